"""A counting function that comes in versions, and a model of all that it does.

What a job has worked on is a list: the number at each place is the place itself, so all that is
told of it is the version that counted it. From the list follow state and output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gated import KEYS, Count

from penstock.common import Types
from penstock.datastream.state import ValueStateDescriptor

Past = tuple[str | None, ...]
"""The version of each number: the name of the state it had beside the count, if any."""

newest_number = -1
"""The highest that was counted in this process, since somebody set it back."""


class VersionedCount(Count):
    """(key, count); with one more state also the number that the key had before."""

    def __init__(self, version: str | None) -> None:
        self._version = version

    def open(self, context: Any) -> None:
        super().open(context)
        if self._version is not None:
            self._before = context.get_state(ValueStateDescriptor(self._version, Types.LONG()))

    def process_element(self, value: Any, context: Any) -> Any:
        global newest_number
        newest_number = max(newest_number, value)
        for line in super().process_element(value, context):
            if self._version is None:
                yield line
            else:
                yield f"{line} after {self._before.value()}"
                self._before.update(value)


def line_of(past: Sequence[str | None], number: int) -> str:
    """What was written for a number."""
    key, version = number % KEYS, past[number]
    line = f"{key} {number // KEYS + 1}"
    if version is None:
        return line
    same = (n for n in range(number - KEYS, -1, -KEYS) if past[n] == version)
    return f"{line} after {next(same, None)}"


def state_of(past: Past) -> dict[int, int]:
    """The count of each key."""
    return {key: len(range(key, len(past), KEYS)) for key in range(min(KEYS, len(past)))}
