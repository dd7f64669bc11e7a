"""Errors of running jobs: their end, their state, their engine."""

from __future__ import annotations

from penstock.errors._base import PenstockError
from penstock.errors._functions import user_line


class JobCancelledError(PenstockError, RuntimeError):
    """The job was cancelled before it could give what was asked."""

    @classmethod
    def of(cls, job: str) -> JobCancelledError:
        return cls(f"job {job!r} was cancelled")


class JobNotFoundError(PenstockError, LookupError):
    """No job has this name or id, or several have."""

    @classmethod
    def of(cls, wanted: str, running: list[str]) -> JobNotFoundError:
        there = f"running are {', '.join(running)}" if running else "none of yours is running"
        return cls(f"there is no job {wanted!r}; {there}")

    @classmethod
    def ended(cls, wanted: str, outcome: str, running: list[str]) -> JobNotFoundError:
        there = f"running are {', '.join(running)}" if running else "none of yours is running"
        return cls(f"job {wanted!r} has ended already: {outcome}; {there}")

    @classmethod
    def ambiguous(cls, wanted: str, found: list[str]) -> JobNotFoundError:
        return cls(f"{wanted!r} may be any of {', '.join(found)}; give more of its run id")


class JobUnreachableError(PenstockError, ConnectionError):
    """A job cannot be asked, or gives no answer."""

    @classmethod
    def of(cls, job: str, pid: int, reason: str) -> JobUnreachableError:
        return cls(
            f"job {job!r} (process {pid}) does not answer: {reason}; `penstock list` shows what is "
            "running, and the program's own output what became of it"
        )

    @classmethod
    def elsewhere(cls, job: str, host: str, pid: int, here: bool) -> JobUnreachableError:
        if here:
            return cls(
                f"job {job!r} (process {pid}) does not listen, since it could not make a socket in "
                "its user's state directory; stop it by kill -INT"
            )
        return cls(
            f"job {job!r} runs on {host}, and only its processes can talk to it; log in there"
        )


class RemoteJobError(PenstockError, RuntimeError):
    """A running job was asked for something, and refused or failed to do it."""

    type_name: str = ""
    """The name of the error's type, as it was raised in the job's process."""

    @classmethod
    def of(cls, job: str, type_name: str, message: str) -> RemoteJobError:
        error = cls(f"job {job!r}: {message}")
        error.type_name = type_name
        return error


class JobFailedError(PenstockError, RuntimeError):
    """The job failed and will not be restarted."""

    @classmethod
    def of(cls, job: str, cause: BaseException) -> JobFailedError:
        """`cause` says why; raise the result ``from cause`` to keep the chain."""
        return cls(f"job {job!r} failed: {type(cause).__name__}: {cause}")


class StateError(PenstockError, RuntimeError):
    """State was used where, or in a way, it cannot be."""

    @classmethod
    def needs_key(cls, what: str) -> StateError:
        return cls(f"{what} is only possible on a keyed stream; call key_by() first")

    @classmethod
    def no_current_key(cls) -> StateError:
        return cls(
            "there is no current key here, so there is neither state of a key nor a timer: the "
            "record came by an input that is not keyed, or there is none, as in initialize_state "
            "and snapshot_state; use them on the keyed side, or "
            "ctx.apply_to_keyed_state(descriptor, function) for all keys of the subtask"
        )

    @classmethod
    def asked_elsewhere(cls, method: str) -> StateError:
        return cls(
            f"there is no {method}() here: a CheckpointedFunction asks for it in "
            "initialize_state(context) and keeps the states that it declares there"
        )


class ReadOnlyStateError(StateError, AttributeError):
    """State was to be changed where it may only be read. To `hasattr` the method is not there."""

    @classmethod
    def of(cls, state: str, what: str) -> ReadOnlyStateError:
        return cls(
            f"broadcast state {state!r} can only be read here, so it has no {what}; change it in "
            "process_broadcast_element, which every subtask calls with the same records"
        )


class SideInputError(PenstockError, RuntimeError):
    """The table of a side input cannot be read or used. Worth a restart: tables change."""

    @classmethod
    def of(cls, name: str, location: str, reason: str) -> SideInputError:
        return cls(f"side input {name!r} ({location}) cannot be used: {reason}")

    @classmethod
    def unusable(cls, name: str, location: str, cause: BaseException) -> SideInputError:
        return cls.of(name, location, f"{type(cause).__name__}: {cause}")

    @classmethod
    def unreadable(cls, name: str, location: str, cause: BaseException) -> SideInputError:
        """What the user's function or Spark raised."""
        where = user_line(cause.__traceback__) or location
        return cls(
            f"side input {name!r} ({location}) cannot be read: {type(cause).__name__}: {cause} "
            f"(at {where})"
        )


class EngineError(PenstockError, RuntimeError):
    """Spark could not run an epoch: a worker, an executor or a job died. Worth a restart."""

    details: str = ""
    """All that Spark said."""


class StoreLostError(StateError, EngineError):
    """A worker's copy of some state was lost. The checkpoint is whole: a restart rebuilds it."""
