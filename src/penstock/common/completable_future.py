"""CompletableFuture: PyFlink's future, over one of Python's own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that comes later."""

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[T]:
        future: Future[T] = Future()
        future.set_exception(error)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        return self._future.cancel()

    def cancelled(self) -> bool:
        return self._future.cancelled()

    def done(self) -> bool:
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most `timeout` seconds; raises what the work raised."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return self._future.exception(timeout)

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        self._future.add_done_callback(lambda _: callback(self))

    def __repr__(self) -> str:
        if not self.done():
            return "CompletableFuture(pending)"
        if self.cancelled():
            return "CompletableFuture(cancelled)"
        error = self._future.exception()
        return (
            f"CompletableFuture({self._future.result()!r})"
            if error is None
            else (f"CompletableFuture(failed: {error!r})")
        )
