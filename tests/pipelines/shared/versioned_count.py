"""A counting function that comes in versions, and a model of all that it does.

What a job has worked on is a list: the number at each place is the place itself, so all that is
told of it is the version that counted it. State and output follow from the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gated import KEYS, Count

from penstock.common import Types
from penstock.datastream.state import ValueStateDescriptor


class Version(NamedTuple):
    """The state that the function has beside the count."""

    state: str
    wide: bool = False
    """Of floats, not of ints."""


Past = tuple[Version | None, ...]
"""The version of each number; None if it had the count alone."""

newest_number = -1
"""The highest that was counted in this process, since somebody set it back."""


class VersionedCount(Count):
    """(key, count); with one more state also the number that the key had before."""

    def __init__(self, version: Version | None) -> None:
        self._version = version

    def open(self, context: Any) -> None:
        super().open(context)
        if self._version is not None:
            kind = Types.DOUBLE() if self._version.wide else Types.LONG()
            self._before = context.get_state(ValueStateDescriptor(self._version.state, kind))

    def process_element(self, value: Any, context: Any) -> Any:
        global newest_number
        newest_number = max(newest_number, value)
        for line in super().process_element(value, context):
            if self._version is None:
                yield line
            else:
                yield f"{line} after {self._before.value()}"
                self._before.update(float(value) if self._version.wide else value)


def line_of(past: Past, number: int) -> str:
    """What was written for a number."""
    key, version = number % KEYS, past[number]
    line = f"{key} {number // KEYS + 1}"
    if version is None:
        return line
    for before in range(number - KEYS, -1, -KEYS):
        if (found := past[before]) is not None and found.state == version.state:
            return f"{line} after {float(before) if version.wide else before}"
    return f"{line} after None"


def state_of(past: Past) -> dict[int, int]:
    """The count of each key."""
    return {key: len(range(key, len(past), KEYS)) for key in range(min(KEYS, len(past)))}
