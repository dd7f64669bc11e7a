"""Where a contender's answers end: counts them, adds them up, and notes when they came.

Runs in whatever process the answers arrive in, a worker of the contender's as a rule, and leaves
what it saw in a file there. Standard library only: every contender has it in its own environment.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LOOK_AT_CLOCK = 256
"""A look at the clock for so many answers: fine enough for runs of seconds, and cheap."""
_FEW = 10_000
"""Up to so many a look at the clock for each: windows may give but one in seconds."""


class Probe:
    """One for each place where answers arrive (a subtask, a worker)."""

    def __init__(
        self,
        directory: str,
        mark: int,
        position_of: Callable[[Any], int],
        weight_of: Callable[[Any], float],
    ) -> None:
        self._path = Path(directory) / f"probe-{os.getpid()}-{uuid.uuid4().hex}"
        self._mark = mark
        self._position_of = position_of
        self._weight_of = weight_of
        self.outputs = 0
        self.checksum: float = 0
        self._marked_at: float | None = None
        self._last_at: float | None = None

    def see(self, answer: Any) -> None:
        self.outputs += 1
        self.checksum += self._weight_of(answer)
        if self._marked_at is None and self._position_of(answer) >= self._mark:
            self._marked_at = time.perf_counter()
        if self.outputs < _FEW or not self.outputs % _LOOK_AT_CLOCK:
            self._last_at = time.perf_counter()

    def see_all(self, answers: list[Any]) -> None:
        """Many at once, for contenders that hand them over so."""
        weight_of = self._weight_of
        self.outputs += len(answers)
        self.checksum += sum(weight_of(answer) for answer in answers)
        if self._marked_at is None:
            mark, position_of = self._mark, self._position_of
            if any(position_of(answer) >= mark for answer in answers):
                self._marked_at = time.perf_counter()
        self._last_at = time.perf_counter()

    def write(self) -> None:
        """Leave what was seen up to now; may be called again."""
        seen = {
            "outputs": self.outputs,
            "checksum": self.checksum,
            "marked_at": self._marked_at,
            "last_at": self._last_at,
        }
        made = self._path.with_suffix(".new")
        made.write_text(json.dumps(seen))
        os.replace(made, self._path.with_suffix(".json"))


def seen_in(directory: str) -> dict[str, Any]:
    """What all probes of a run saw together. `seconds` are those from mark to end.

    The monotonic clock is one for all processes of a machine, so times of several can be compared.
    The mark was reached when every probe had: whoever is ahead waits for the last one.
    """
    seen = [json.loads(path.read_text()) for path in Path(directory).glob("probe-*.json")]
    marks = [each["marked_at"] for each in seen if each["marked_at"] is not None]
    ends = [each["last_at"] for each in seen if each["last_at"] is not None]
    return {
        "outputs": sum(each["outputs"] for each in seen),
        "checksum": sum(each["checksum"] for each in seen),
        "seconds": max(ends) - max(marks) if marks and ends else None,
    }
