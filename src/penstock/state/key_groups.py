"""Key-group arithmetic: key → key group → subtask. Pure; everything that rescales rests on it."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

DEFAULT_LOWER_BOUND = 128
UPPER_BOUND = 32768


def key_group_of(key_bytes: bytes, max_parallelism: int) -> int:
    """The group of an encoded key: the same on every machine and Python version."""
    group: int = xxh3_64_intdigest(key_bytes) % max_parallelism
    return group


def subtask_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    return key_group * parallelism // max_parallelism


def key_group_range(subtask: int, max_parallelism: int, parallelism: int) -> tuple[int, int]:
    """First and last key group of a subtask, both inclusive."""
    start = -(-subtask * max_parallelism // parallelism)
    end = -(-(subtask + 1) * max_parallelism // parallelism) - 1
    return start, end


def default_max_parallelism(parallelism: int) -> int:
    """Flink's rule: one and a half times the parallelism, rounded up to a power of two, within
    128 and 32768."""
    wanted = parallelism + parallelism // 2
    rounded = 1 << max(wanted - 1, 0).bit_length()
    return min(max(rounded, DEFAULT_LOWER_BOUND), UPPER_BOUND)
