"""What the programs compute, as plain functions: every contender calls these, or has them written
out in the form that its API asks for. Standard library only.

Temperatures are multiples of 1/16, and whatever is done to them is exact, so that answers are equal
in whatever order records are added.
"""

from __future__ import annotations

import zlib
from operator import itemgetter
from typing import Any

Reading = tuple[str, int, float]
"""Sensor, time in milliseconds, temperature."""
Answer = tuple[str, int, Any]
"""Key, time, and what there is to say. A time is the place in the input that it belongs to."""

SIZE_MILLIS = 5_000
SLIDE_MILLIS = 1_000
GAP_MILLIS = 1_500
OUT_OF_ORDER_MILLIS = 1_000

NEAR_MILLIS = 500
"""What an interval join takes together: a reading of the one stream and those of the other that
are as old, or later by up to so much."""

WARM = 61.0
CLASSES = 100


def prepared(row: Any) -> Reading:
    """The map at the head of every program: it makes a tuple out of a row of the contender's."""
    return row[0], row[1], row[2] * 2 + 0.25


def is_warm(reading: Reading) -> bool:
    """True for about half of them."""
    return reading[2] >= 2 * WARM


def sensor_of(reading: Reading) -> str:
    return reading[0]


def time_of(reading: Reading) -> int:
    return reading[1]


def counted(state: tuple[int, float] | None, reading: Reading) -> tuple[tuple[int, float], Answer]:
    """The key's new count and sum, and the answer: every record has one."""
    count, total = state or (0, 0.0)
    count += 1
    return (count, total + reading[2]), (reading[0], reading[1], count)


Accumulator = tuple[str, int, float, int]
"""Sensor, count, sum, and the latest time, which says which window this is."""


def nothing_yet() -> Accumulator:
    return "", 0, 0.0, 0


def added(held: Accumulator, reading: Reading) -> Accumulator:
    sensor, at, temperature = reading
    latest = held[3]
    return sensor, held[1] + 1, held[2] + temperature, at if at > latest else latest


def merged(one: Accumulator, other: Accumulator) -> Accumulator:
    return other[0] or one[0], one[1] + other[1], one[2] + other[2], max(one[3], other[3])


def average_of(held: Accumulator) -> Answer:
    sensor, count, total, latest = held
    return sensor, latest, (count, total / count)


def exact_digest_of(answer: Answer) -> int:
    """For averages that SQL computes too: whole numbers, which both can add up."""
    count, average = answer[2]
    return count * 1_000_003 + int(average * 1024)


def end_of_window(at: int) -> int:
    return at - at % SIZE_MILLIS + SIZE_MILLIS


def paired(left: Reading, right: Reading) -> Answer:
    return left[0], max(left[1], right[1]), left[2] + right[2]


def class_of(sensor: str) -> int:
    return int(sensor[7:]) % CLASSES


def threshold_of(sensors: int) -> float:
    """Of a class. The rules that come in say the same, so that it does not matter when they do."""
    return 100.0 + sensors / 2


def words_of(row: Any) -> list[tuple[str, int]]:
    """The line's words, each with the line's time."""
    at = row[1]
    return [(word, at) for word in row[0].split()]


position_of = itemgetter(1)
amount_in = itemgetter(2)
"""For programs with an answer per record: adding up must cost little."""


def digest_of(answer: Answer) -> int:
    """For programs with few answers: everything that they say."""
    return zlib.crc32(repr(tuple(answer)).encode())
