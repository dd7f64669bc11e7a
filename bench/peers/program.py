"""What a program is: its input, its answers, and how to run it on each contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.expected import Expected
from bench.peers.inputs import FILE_MILLIS, Scale, end_of

Directories = dict[str, str]
"""Of the program's inputs, by name."""


@dataclass(frozen=True)
class Wanted:
    """Penstock's rate divided by the contender's must be at least this."""

    contender: str
    at_least: float
    of: str = "penstock"
    """Whose rate is divided."""


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    inputs: Callable[[int, Scale], dict[str, Path]]
    """Makes at least the first so many files of each input, and says where they are."""
    expected: Callable[[dict[str, Path], int], Expected]
    """The answers over the first so many files."""
    calls: Mapping[str, str]
    """Contender → ``module:function``, which runs it in the contender's own process."""
    rates: Mapping[str, float]
    """About how many rows a second a contender manages: only to size its input by."""
    order: Mapping[str, Any] = field(default_factory=dict)
    """Further entries of the order that every contender gets (`engines/orders.py`)."""
    goals: tuple[Wanted, ...] = ()
    back_millis: int = 0
    """The mark is so much before the end of the cold files."""
    lag_millis: int | None = None
    """When an answer comes out, the input has been read for so long behind the answer's time: of a
    window that is its size and the wait for records out of order. Just as far as the mark is before
    the end of the cold files if None. Of micro-batches neither counts."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Contender → why the program is not written for it."""
    rows_in: Callable[[int, Scale], int] | None = None
    """Rows in the first so many files of all inputs; what the scale says if None."""

    batch: int = 1
    """So many times as many files as usual are in a micro-batch: of each there is less to read."""

    def mark(self, cold_files: int) -> int:
        """The time of the first answer that is not the cold files'."""
        return end_of(cold_files) - self.back_millis

    def rows_before_mark(self, cold_rows: int, cold_files: int, in_batches: bool) -> int:
        """Rows that have been read when the first such answer comes out."""
        if in_batches or self.lag_millis is None:
            return cold_rows
        beyond = (self.lag_millis - self.back_millis) / FILE_MILLIS
        return cold_rows + round(beyond * cold_rows / cold_files)
