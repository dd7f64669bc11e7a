"""Event time of sources as only the driver can know it, told to tasks with the next order. Pure.

The tasks of a Spark source have other rows in every epoch: how far the source has come, and for how
long it has been silent, shows only when all of them are seen together, epoch after epoch. Likewise
where the slowest of several aligned sources is.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.common.watermark_strategy import WatermarkKind, WatermarkStrategy
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan
from penstock.runtime.watermarks import MIN_TIMESTAMP


class SourceTime:
    """Lives as long as the driver: after a restart silence is measured anew."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._roving: dict[str, WatermarkStrategy] = {}
        self._source: dict[str, SparkSource] = {}
        self._groups: dict[str, str] = {}
        for vertex in plan.vertices:
            head = vertex.operators[0]
            if isinstance(head.operator, SparkSource):
                strategies = {o.uid: _strategy(o) for o in vertex.operators}
                self._roving.update({uid: s for uid, s in strategies.items() if s is not None})
                self._source.update(dict.fromkeys(strategies, head.operator))
            elif isinstance(head.operator, PythonSource):
                strategy = _strategy(head)
                if strategy is not None and strategy.alignment is not None:
                    self._groups[head.uid] = strategy.alignment.group
        self._reached = dict.fromkeys(self._roving, MIN_TIMESTAMP)
        self._last_seen: dict[str, int] = {}
        self._splits: dict[str, dict[str, int]] = {}

    def times(self, clock: int) -> dict[str, tuple[int, bool]]:
        """The watermark of each Spark source with timestamps, and whether it is idle."""
        return {uid: self._time(uid, strategy, clock) for uid, strategy in self._roving.items()}

    def _time(self, uid: str, strategy: WatermarkStrategy, clock: int) -> tuple[int, bool]:
        if strategy.kind is WatermarkKind.INGESTION:
            return max(self._reached[uid], clock - 1), False
        silent = clock - self._last_seen.setdefault(uid, clock)
        timeout = strategy.idle_timeout_millis
        return self._reached[uid], timeout is not None and silent >= timeout

    def slowest(self) -> dict[str, int]:
        """The lowest watermark in each group of aligned sources, of splits that have one."""
        found: dict[str, int] = {}
        for uid, splits in self._splits.items():
            group = self._groups[uid]
            for watermark in splits.values():
                if watermark > MIN_TIMESTAMP:
                    found[group] = min(watermark, found.get(group, watermark))
        return found

    def learn(self, clock: int, acknowledgements: Iterable[Acknowledgement]) -> None:
        """An epoch has been committed, which was begun at `clock`."""
        heard: dict[str, list[int]] = {}
        aligned: dict[str, dict[str, int]] = {uid: {} for uid in self._groups}
        for acknowledgement in acknowledgements:
            for uid, parts in acknowledgement.reached.items():
                if uid in self._roving:
                    heard.setdefault(uid, []).extend(parts.values())
                elif uid in aligned:
                    aligned[uid].update(parts)
        for uid, watermarks in heard.items():
            self._last_seen[uid] = clock
            reached = self._source[uid].reached(watermarks)
            self._reached[uid] = max(self._reached[uid], reached)
        self._splits = aligned


def _strategy(operator: PhysicalOperator) -> WatermarkStrategy | None:
    described = operator.operator
    time = described if isinstance(described, AssignTime) else getattr(described, "time", None)
    return time.strategy if isinstance(time, AssignTime) else None
