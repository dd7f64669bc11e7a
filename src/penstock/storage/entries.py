"""One piece of keyed state, and the order-keeping byte key under which a store holds it.

A packed key is ``key group (2 bytes, big-endian) | state id (8) | length, key | length, namespace
| map key``. So a key group is one contiguous range, in it each state, in that each key, and the
entries of one map are a prefix scan. Lengths are unsigned LEB128: one byte up to 127.

Packing happens once per state access: the functions here do the least they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from xxhash import xxh3_64_digest

KEY_GROUP_BYTES = 2
STATE_ID_BYTES = 8
PREFIX_BYTES = KEY_GROUP_BYTES + STATE_ID_BYTES

# Key groups end at 32767, so no packed key can start with this byte. Stores keep their own
# records (version, state names) behind it.
RESERVED = b"\xff"


class Entry(NamedTuple):
    """A value of one state under one key; ``value`` None says that it was removed."""

    key_group: int
    operator: str
    state: str
    key: bytes
    namespace: bytes
    map_key: bytes
    value: bytes | None

    def packed(self) -> bytes:
        return pack_key(
            self.key_group,
            state_id(self.operator, self.state),
            self.key,
            self.namespace,
            self.map_key,
        )


class UnpackedKey(NamedTuple):
    key_group: int
    state_id: bytes
    key: bytes
    namespace: bytes
    map_key: bytes


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Nearly all keys are shorter than this; a list index is five times cheaper than the loop above.
_LENGTHS = [uvarint(n) for n in range(1024)]


@lru_cache(maxsize=4096)
def state_id(operator: str, state: str) -> bytes:
    """A short stable name for a state of an operator."""
    return xxh3_64_digest(f"{operator}\0{state}".encode())


def state_prefix(key_group: int, state_id: bytes) -> bytes:
    """What the packed keys of one state in one key group begin with."""
    return key_group.to_bytes(2, "big") + state_id


def key_prefix(key_group: int, state_id: bytes, key: bytes, namespace: bytes) -> bytes:
    """What the packed keys of one map begin with: append the map key to get an entry's key."""
    return pack_key(key_group, state_id, key, namespace, b"")


def entry_prefix(key_group: int, state_id: bytes, key: bytes) -> bytes:
    """What the packed keys of all namespaces of one key begin with."""
    return b"".join((key_group.to_bytes(2, "big"), state_id, uvarint(len(key)), key))


def pack_key(
    key_group: int, state_id: bytes, key: bytes, namespace: bytes = b"", map_key: bytes = b""
) -> bytes:
    try:
        lengths = _LENGTHS[len(key)], _LENGTHS[len(namespace)]
    except IndexError:
        lengths = uvarint(len(key)), uvarint(len(namespace))
    return b"".join(
        (key_group.to_bytes(2, "big"), state_id, lengths[0], key, lengths[1], namespace, map_key)
    )


def pack_keys(
    key_groups: Sequence[int],
    state_id: bytes,
    keys: Sequence[bytes],
    namespaces: Sequence[bytes],
    map_keys: Sequence[bytes],
) -> list[bytes]:
    """`pack_key` for many entries of one state, in half the time."""
    heads = {group: state_prefix(group, state_id) for group in set(key_groups)}
    lengths = _LENGTHS
    try:
        if not any(namespaces) and not any(map_keys):
            plain = zip(key_groups, keys, strict=True)
            return [heads[group] + lengths[len(key)] + key + b"\0" for group, key in plain]
        rows = zip(key_groups, keys, namespaces, map_keys, strict=True)
        return [
            heads[group] + lengths[len(key)] + key + lengths[len(space)] + space + map_key
            for group, key, space, map_key in rows
        ]
    except IndexError:  # a long one
        ids = repeat(state_id, len(keys))
        return list(map(pack_key, key_groups, ids, keys, namespaces, map_keys))


def unpack_key(packed: bytes) -> UnpackedKey:
    length, start = _read_length(packed, PREFIX_BYTES)
    end = start + length
    namespace_length, namespace_start = _read_length(packed, end)
    namespace_end = namespace_start + namespace_length
    return UnpackedKey(
        int.from_bytes(packed[:2], "big"),
        packed[2:PREFIX_BYTES],
        packed[start:end],
        packed[namespace_start:namespace_end],
        packed[namespace_end:],
    )


def _read_length(packed: bytes, at: int) -> tuple[int, int]:
    """The length that starts at `at`, and where what it measures starts."""
    byte = packed[at]
    at += 1
    if byte < 0x80:
        return byte, at
    number, shift = byte & 0x7F, 7
    while True:
        byte = packed[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
