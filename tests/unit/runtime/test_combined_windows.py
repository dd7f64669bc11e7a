"""Partial results that wait until they are merged."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.datastream.connectors._arrow_columns import column_values
from penstock.runtime import partials
from penstock.runtime.operators.windows import combined
from penstock.runtime.operators.windows.combined import CombinedAligned
from penstock.runtime.partials import NUMBER_OF_RECORDS, VALUES, Combined, Partial


class _Waiting(CombinedAligned):
    """Only the waiting: what is merged goes nowhere."""

    def __init__(self) -> None:
        self.merges: list[int] = []
        self._waiting = []
        self._rows = self._bytes = 0
        self._merged = self._note

    def _note(self, batches: list[Any]) -> Any:
        self.merges.append(len(batches))
        return iter(())


def _batch(rows: int, values: int) -> Any:
    sets = pa.array([list(range(values))] * rows)
    return pa.RecordBatch.from_arrays([pa.array([f"k{n}" for n in range(rows)]), sets], ["k", "s"])


@pytest.mark.parametrize(
    ("limit", "most", "merges"),
    [("_MOST_ROWS", 250, [3, 3]), ("_MOST_BYTES", 10_000, [1] * 6), ("_MOST_BYTES", 1 << 20, [])],
)
def test_so_many_rows_and_bytes_wait(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int, merges: list[int]
) -> None:
    monkeypatch.setattr(combined, limit, most)
    windows = _Waiting()

    for _ in range(6):
        windows._wait(_batch(100, 50))

    assert windows.merges == merges


def test_few_rows_at_a_time_become_python_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether Arrow has merged them or not; none is lost between two parts."""
    monkeypatch.setattr(partials, "_AT_ONCE", 3)
    lengths: list[int] = []

    def noted(column: Any) -> list[Any]:
        lengths.append(len(column))
        return column_values(column)

    monkeypatch.setattr(partials, "column_values", noted)
    keys = pa.array([f"k{n}" for n in range(8)])
    columns = [keys, *[pa.array([0] * 8)] * 2, pa.array(range(1, 9))]
    counts = Combined((0,), False, 1000, 0, (), (("count", (NUMBER_OF_RECORDS,)),))
    different = Combined(
        (0,), False, 1000, 0, (Partial(VALUES, (1,)),), (("count_distinct", (0,)),)
    )
    sets = pa.array([[n] for n in range(8)])

    for read, extra, parts in (
        (counts, [], [(n,) for n in range(1, 9)]),
        (different, [sets], [({n},) for n in range(8)]),
    ):
        made = [*columns, *extra]
        batch = pa.RecordBatch.from_arrays(made, [str(n) for n in range(len(made))])
        found = list(read.merged([batch]))
        assert found == [(f"k{n}", 0, n + 1, parts[n]) for n in range(8)]
    assert max(lengths) == 3
