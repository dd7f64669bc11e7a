"""What the demo knows at a moment. Written by the job's thread, read by the terminal's."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import NamedTuple

BOARDS: dict[str, Board] = {}
"""By name, since the sink that finds one here travels by pickle."""


class Average(NamedTuple):
    """The newest of a sensor: a reading, and the mean and count of all its readings."""

    sensor: str
    number: int
    temperature: float
    mean: float
    readings: int


class EpochNumbers(NamedTuple):
    epoch: int
    seconds: float
    readings: int
    state_bytes: int
    at: float


@dataclass
class Board:
    total: int
    sensors: dict[str, Average] = field(default_factory=dict)
    alerts: dict[tuple[str, int], str] = field(default_factory=dict)
    newest_alerts: deque[tuple[str, int, str]] = field(default_factory=lambda: deque(maxlen=3))
    epochs: list[EpochNumbers] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def average(self, average: Average) -> None:
        with self._lock:
            self.sensors[average.sensor] = average

    def alert(self, sensor: str, number: int, what: str) -> None:
        with self._lock:
            if (sensor, number) not in self.alerts:
                self.alerts[sensor, number] = what
                self.newest_alerts.append((sensor, number, what))

    def epoch(self, epoch: int, seconds: float, readings: int, state_bytes: int) -> None:
        with self._lock:
            now = time.monotonic()
            self.epochs.append(EpochNumbers(epoch, seconds, readings, state_bytes, now))

    # Questions

    def averages(self) -> list[Average]:
        with self._lock:
            return sorted(self.sensors.values())

    def alerts_by_sensor(self) -> Counter[str]:
        with self._lock:
            return Counter(sensor for sensor, _ in self.alerts)

    def last_epoch(self) -> EpochNumbers | None:
        """The newest epoch that read something, else the newest."""
        with self._lock:
            busy = (epoch for epoch in reversed(self.epochs[-20:]) if epoch.readings)
            return next(busy, self.epochs[-1] if self.epochs else None)

    def readings(self) -> int:
        """All that state has counted, in this run and those before."""
        return sum(average.readings for average in self.averages())

    def rate(self, over_seconds: float = 3.0) -> float:
        """Readings per second over the last few epochs."""
        with self._lock:
            busy = [epoch for epoch in self.epochs[-200:] if epoch.readings]
            recent = [e for e in busy[:-2] if busy[-1].at - e.at < over_seconds] + busy[-2:]
        if len(recent) < 2:
            return 0.0
        return sum(e.readings for e in recent[1:]) / (recent[-1].at - recent[0].at)

    def miscounted(self) -> list[Average]:
        """Sensors whose readings were lost or counted twice: there must be none."""
        return [average for average in self.averages() if average.readings != average.number]
