"""The rows that pass between stages: a header that says what a payload is and whose, and a body.

Record bodies hold timestamps (if the records have any) and values. Keys are not sent: computing
them anew at the receiver costs less than carrying them.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from penstock.runtime.codec import decode, encode, encode_frozen

RECORDS, ACKNOWLEDGEMENT = 0, 1

# kind, edge, producing vertex, producing subtask, token
_HEADER = struct.Struct(">BHHI8s")
_LENGTH = struct.Struct(">I")
HEADER_SIZE = _HEADER.size


class Row(NamedTuple):
    """What a stage hands to the next: `partition` is the receiving subtask."""

    partition: int
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


def encode_body(
    timestamps: list[Any] | None, values: list[Any], frozen: bool
) -> tuple[bytes, bool]:
    """The body of a run of records, and whether the records are such as cannot change."""
    time_part = encode(timestamps)[0] if timestamps is not None else b""
    if frozen:
        value_part, constant = encode_frozen(values), True
    else:
        value_part, constant = encode(values)
    return b"".join((_LENGTH.pack(len(time_part)), time_part, value_part)), constant


def decode_body(payload: bytes) -> tuple[list[Any] | None, list[Any]]:
    """Timestamps and values of a payload of records."""
    view = memoryview(payload)
    (length,) = _LENGTH.unpack_from(payload, HEADER_SIZE)
    start = HEADER_SIZE + _LENGTH.size
    end = start + length
    return decode(view[start:end]) if length else None, decode(view[end:])
