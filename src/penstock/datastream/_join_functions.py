"""Functions over two streams whose records meet in a window, as in Flink's Java API."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.datastream._basic_functions import Function


class JoinFunction(Function):
    """One output for each pair of records that have key and window in common."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The value to emit for a record of the first stream and one of the second."""


class FlatJoinFunction(Function):
    """Any number of outputs for each pair of records that have key and window in common."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The values to emit for a record of the first stream and one of the second."""


class CoGroupFunction(Function):
    """Sees all records of a key and window at once; those of one stream may be missing."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """The values to emit; both arguments are lists, and one of them may be empty."""
