"""The rows that pass between stages: a header that says what a payload is and whose, and a body.

Record bodies hold values, their timestamps (if they have any) and the control events between them.
Keys are not sent: computing them anew at the receiver costs less than carrying them.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from penstock.runtime.codec import decode, encode, encode_as, encode_columns, encode_frozen
from penstock.runtime.shapes import shape_of_timestamps

RECORDS, ACKNOWLEDGEMENT = 0, 1

# kind, edge, producing vertex, producing subtask, token
_HEADER = struct.Struct(">BHHI8s")
_LENGTHS = struct.Struct(">II")
HEADER_SIZE = _HEADER.size


class Row(NamedTuple):
    """What a stage hands to the next: `partition` is the receiving subtask, which gets its rows in
    the order of `time`, `producer` and `sequence`."""

    partition: int
    time: int
    """How far the producer was in event time when the payload began; of what Spark reads, how old
    its records can be."""
    producer: int
    sequence: int
    payload: bytes


class Header(NamedTuple):
    kind: int
    edge: int
    vertex: int
    subtask: int
    token: bytes


def make_header(kind: int, edge: int, vertex: int, subtask: int, token: bytes) -> bytes:
    return _HEADER.pack(kind, edge, vertex, subtask, token)


def read_header(payload: bytes) -> Header:
    return Header(*_HEADER.unpack_from(payload))


Event = tuple[int, int, int]
"""How many records of the run come before it, kind, time."""


class Body(NamedTuple):
    values: Any
    """A list, or a batch of Arrow's."""
    timestamps: list[Any] | None
    events: list[Event]


def encode_body(
    timestamps: list[Any] | None,
    values: list[Any],
    frozen: bool,
    events: list[Event] | None = None,
    shape: str | None = None,
) -> tuple[bytes, bool]:
    """The body of a run of records, and whether the records are such as cannot change."""
    time_part = b""
    if timestamps is not None:
        time_part, _ = encode_as(shape_of_timestamps(timestamps), timestamps)
    event_part = encode(events)[0] if events else b""
    if frozen:
        value_part, constant = encode_frozen(values), True
    else:
        value_part, constant = encode_as(shape, values)
    lengths = _LENGTHS.pack(len(time_part), len(event_part))
    return b"".join((lengths, time_part, event_part, value_part)), constant


def encode_batch(batch: Any, events: list[Event]) -> bytes:
    """The body of a run that is a batch of Arrow's, behind all events."""
    event_part = encode(events)[0] if events else b""
    return b"".join((_LENGTHS.pack(0, len(event_part)), event_part, encode_columns(batch)))


def decode_body(payload: bytes, at: int = HEADER_SIZE) -> Body:
    """What a payload of records holds; its body begins at `at`."""
    view = memoryview(payload)
    time_length, event_length = _LENGTHS.unpack_from(payload, at)
    start = at + _LENGTHS.size
    middle = start + time_length
    end = middle + event_length
    return Body(
        decode(view[end:]),
        decode(view[start:middle]) if time_length else None,
        decode(view[middle:end]) if event_length else [],
    )
