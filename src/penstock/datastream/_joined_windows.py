"""What a window join runs: records marked by their stream, and functions that part them again.

They run on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.datastream._basic_functions import WrappingFunction
from penstock.datastream.functions import Function, RuntimeContext, WindowFunction

FIRST, SECOND = 0, 1
"""Of a pair (stream, record): the stream that `join` or `co_group` was called on, and the other."""

Marked = tuple[int, Any]
"""A record on its way into a common window. A plain tuple, which is pickled without Python code."""


@dataclass(frozen=True)
class KeyOfEither:
    """The key of a marked record, by the selector of its stream."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, marked: Marked) -> Any:
        stream, record = marked
        return self.second(record) if stream else self.first(record)


class _OfBoth(WindowFunction[Any, Any, Any, Any], WrappingFunction):
    """Around a user's function of two streams, or a plain callable."""

    def __init__(self, function: Any, method: str) -> None:
        self._function = function
        self._method = method

    @property
    def user_function(self) -> Any:
        return self._function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)
        self._call = self._callable()

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def _callable(self) -> Callable[[Any, Any], Any]:
        if isinstance(self._function, Function):
            bound: Callable[[Any, Any], Any] = getattr(self._function, self._method)
            return bound
        plain: Callable[[Any, Any], Any] = self._function
        return plain


def _parted(inputs: Iterable[Marked]) -> tuple[list[Any], list[Any]]:
    first: list[Any] = []
    second: list[Any] = []
    for stream, record in inputs:
        (second if stream else first).append(record)
    return first, second


class JoinPairs(_OfBoth):
    """One result for each pair."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "join")

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        join = self._call
        firsts, seconds = _parted(inputs)
        for first in firsts:
            for second in seconds:
                yield join(first, second)


class FlatJoinPairs(JoinPairs):
    """Several results for each pair, or none."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        for results in super().apply(key, window, inputs):
            if results is not None:
                yield from results


class CoGroup(_OfBoth):
    """Results for all records at once."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "co_group")

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        results: Iterable[Any] | None = self._call(*_parted(inputs))
        return () if results is None else results
