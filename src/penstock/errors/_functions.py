"""What users' functions raise, and where in their code."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from penstock.errors._base import PenstockError, short_repr

_PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_LIBRARY_PARTS = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    os.path.dirname(os.__file__) + os.sep,
)


class UserFunctionError(PenstockError, RuntimeError):
    """The user's function raised; names the operator and the user's own line."""

    def __init__(
        self,
        operator: str,
        location: str,
        original_type: str,
        original_message: str,
        traceback_text: str = "",
    ) -> None:
        self.operator = operator
        self.location = location
        self.original_type = original_type
        self.original_message = original_message
        self.traceback_text = traceback_text
        cause = f"{original_type}: {original_message}" if original_message else original_type
        super().__init__(f"operator {operator!r} failed at {location}: {cause}")

    @classmethod
    def of(
        cls, operator: str, cause: BaseException, location: str = "an unknown line"
    ) -> UserFunctionError:
        """Wrap what a user function raised; call it where the exception is caught.

        `location` is the line to name if none of the user's is in the trace: a function may be
        Python's own, or be called with the wrong arguments.
        """
        return cls(
            operator,
            user_line(cause.__traceback__) or location,
            type(cause).__name__,
            str(cause),
            "".join(
                traceback.format_exception(type(cause), cause, _from_users(cause.__traceback__))
            ),
        )

    def with_cause(self) -> UserFunctionError:
        """With the function's own trace above it; the exception stayed where it was raised."""
        if self.__cause__ is None and self.traceback_text:
            self.__cause__ = RaisedInFunction(self.traceback_text)
        return self


class RaisedInFunction(PenstockError):
    """What a user's function raised, as Python shows it."""

    def __str__(self) -> str:
        return f"\n{self.args[0].rstrip()}"


def _from_users(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames that led to the user's first one."""
    users = trace
    while users is not None and not is_users_file(users.tb_frame.f_code.co_filename):
        users = users.tb_next
    return users or trace


def user_line(trace: TracebackType | None) -> str | None:
    """The innermost line of the user's: neither Penstock's nor an installed library's."""
    for frame in reversed(traceback.extract_tb(trace)):
        if is_users_file(frame.filename):
            return f"{frame.filename}:{frame.lineno}"
    return None


def is_users_file(path: str) -> bool:
    """Whether code is neither Penstock's nor an installed library's."""
    ours = path.startswith((_PACKAGE_DIR, "<frozen"))
    return not ours and not any(part in path for part in _LIBRARY_PARTS)


class AsyncTimeoutError(PenstockError, TimeoutError):
    """A call of an asynchronous function took too long."""

    @classmethod
    def of(cls, value: object, seconds: float, waiting_at: str | None) -> AsyncTimeoutError:
        where = f", waiting at {waiting_at}" if waiting_at else ""
        return cls(
            f"async_invoke for {short_repr(value)} gave no answer within {seconds:g} s{where}; "
            "raise the time-out, or override AsyncFunction.timeout to give results for such records"
        )

    @classmethod
    def blocked(cls, seconds: float, line: str | None) -> AsyncTimeoutError:
        return cls(
            f"a coroutine has blocked the event loop for {seconds:.1f} s, longer than a call may "
            f"take, at {line or 'a line that is not known'}; await what takes long, or use "
            "asyncio.to_thread"
        )
