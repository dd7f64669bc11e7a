"""The rows that pass between stages: a header that says what a payload is and whose, and a body.

Record bodies hold keys (if the edge is keyed), timestamps (if the records have any) and values.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from penstock.runtime.codec import decode, encode, encode_frozen

RECORDS, ACKNOWLEDGEMENT = 0, 1

# kind, edge, producing vertex, producing subtask, token
_HEADER = struct.Struct(">BHHI8s")
_LENGTHS = struct.Struct(">II")
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
    keys: list[Any] | None, timestamps: list[Any] | None, values: list[Any], frozen: bool
) -> tuple[bytes, bool]:
    """The body of a run of records, and whether the records are such as cannot change."""
    key_part, constant_keys = encode(keys) if keys is not None else (b"", True)
    time_part = encode(timestamps)[0] if timestamps is not None else b""
    if frozen:
        value_part, constant = encode_frozen(values), True
    else:
        value_part, constant = encode(values)
    lengths = _LENGTHS.pack(len(key_part), len(time_part))
    return b"".join((lengths, key_part, time_part, value_part)), constant and constant_keys


def decode_body(payload: bytes) -> tuple[list[Any] | None, list[Any] | None, list[Any]]:
    """Keys, timestamps and values of a payload of records."""
    view = memoryview(payload)
    keys_length, times_length = _LENGTHS.unpack_from(payload, HEADER_SIZE)
    start = HEADER_SIZE + _LENGTHS.size
    middle = start + keys_length
    end = middle + times_length
    keys = decode(view[start:middle]) if keys_length else None
    timestamps = decode(view[middle:end]) if times_length else None
    return keys, timestamps, decode(view[end:])
