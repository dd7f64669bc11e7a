"""What `execute_and_collect` gives: an iterator over results of a job that may still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

__all__ = ["CloseableIterator"]


class CloseableIterator:
    """Closing it ends the job behind it; so does reaching the end. Use it in a `with` block."""

    def __init__(self, values: Iterator[Any], close: Callable[[], None] | None = None) -> None:
        self._values = values
        self._close = close

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._values)
        except BaseException:  # the end, a failed job, Ctrl-C: there will be no more
            self.close()
            raise

    def next(self) -> Any:
        return self.__next__()

    def close(self) -> None:
        """Can be called any number of times."""
        close, self._close = self._close, None
        self._values = iter(())
        if close is not None:
            close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
