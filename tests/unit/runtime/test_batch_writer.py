"""Batches on their way to the receivers of their rows' keys."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import RecordTooLargeError
from penstock.graph.location import Location
from penstock.graph.partitioning import ByKey
from penstock.runtime import batch_writer
from penstock.runtime.batch_writer import BatchWriter, takes_batches
from penstock.runtime.partials import KeyColumns
from penstock.runtime.payload import decode_body
from penstock.runtime.physical import PhysicalEdge, Vertex
from penstock.runtime.watermarks import ACTIVE, WATERMARK
from penstock.runtime.writers import Outbox
from penstock.state.backend import KeyScope
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import encode_key

_BY_KEY = ByKey(KeyColumns(1, several=False))
_RECEIVERS = 3
_KEYS = [f"k{number}" for number in range(50)]


def _writer(outbox: Outbox) -> BatchWriter:
    sender, receiver = (
        Vertex(index, f"v{index}", f"v{index}", index, parallelism, 128, (), (), ())
        for index, parallelism in ((1, 1), (2, _RECEIVERS))
    )
    edge = PhysicalEdge(5, 1, 2, _BY_KEY, 0, Location("f.py", 1), "edge", stamped=True)
    writer = BatchWriter(edge, (sender, 0), receiver, KeyScope(), outbox)
    writer.begin_epoch(1, b"attempt1", False)
    return writer


def _batch(keys: list[str]) -> Any:
    columns = [pa.array(keys), pa.array(range(len(keys)))]
    return pa.RecordBatch.from_arrays(columns, ["key", "number"])


def _received(outbox: Outbox) -> dict[int, list[tuple[str, int]]]:
    found = defaultdict(list)
    for row in outbox.take():
        values = decode_body(row.payload).values
        if len(values):
            found[row.partition] += zip(*(c.to_pylist() for c in values.columns), strict=True)
    return dict(found)


def test_rows_go_where_records_of_their_keys_would() -> None:
    assert takes_batches(_BY_KEY)
    assert not takes_batches(ByKey(len))
    outbox = Outbox()
    writer = _writer(outbox)

    writer.run(_batch(_KEYS))

    assert writer.end_epoch() == len(_KEYS)
    expected = defaultdict(list)
    for number, key in enumerate(_KEYS):
        group = key_group_of(encode_key(key), 128)
        expected[subtask_of(group, 128, _RECEIVERS)].append((key, number))
    assert _received(outbox) == expected


def test_what_was_told_before_comes_before_the_rows() -> None:
    outbox = Outbox()
    writer = _writer(outbox)
    writer.control((ACTIVE, 0))

    writer.run(_batch(["a"]))
    writer.control((WATERMARK, 7))
    writer.end_epoch()

    (to_a,) = {row.partition for row in outbox.rows if len(decode_body(row.payload).values)}
    bodies = [decode_body(row.payload) for row in outbox.rows if row.partition == to_a]
    assert [(len(body.values), body.timestamps, body.events) for body in bodies] == [
        (1, None, [(0, ACTIVE, 0)]),
        (0, [], [(0, WATERMARK, 7)]),
    ]


@pytest.mark.parametrize("events", range(4))
def test_columns_arrive_where_numbers_may_lie(events: int) -> None:
    """Wherever they are in a payload: else Arrow complains of each when it merges them."""
    outbox = Outbox()
    writer = _writer(outbox)
    for _ in range(events):
        writer.control((ACTIVE, 0))

    writer.run(_batch(["a", "b"]))

    for row in outbox.rows:
        columns = decode_body(row.payload).values.columns
        buffers = [buffer for column in columns for buffer in column.buffers()]
        assert not any(buffer.address % 8 for buffer in buffers if buffer is not None)


def test_too_large_for_one_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = Outbox()
    writer = _writer(outbox)
    monkeypatch.setattr(batch_writer, "LARGEST_PAYLOAD", 2000)

    writer.run(_batch(["a"] * 100))

    (rows,) = _received(outbox).values()
    assert rows == [("a", number) for number in range(100)]
    with pytest.raises(RecordTooLargeError, match="2,000 bytes"):
        writer.run(_batch(["a" * 3000]))
