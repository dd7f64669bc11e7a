"""Plain callables as window functions. They run on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions import AllWindowFunction, WindowFunction


class CalledWindowFunction(WindowFunction[Any, Any, Any, Any]):
    """`func(key, window, elements)` gives the outputs."""

    def __init__(self, func: Callable[[Any, Any, Iterable[Any]], Iterable[Any]]) -> None:
        self._func = func

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._func(key, window, inputs)


class CalledAllWindowFunction(AllWindowFunction[Any, Any, Any]):
    """`func(window, elements)` gives the outputs."""

    def __init__(self, func: Callable[[Any, Iterable[Any]], Iterable[Any]]) -> None:
        self._func = func

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._func(window, inputs)
