"""How much an epoch may read from Python sources, decided from what past epochs took. Pure.

An epoch costs a fixed time, however little it has to do: to start its tasks, to commit it. While a
job keeps up, it reads whatever has come meanwhile, so that the fixed cost takes only what would be
idle time otherwise. When it does not keep up, epochs should be long enough for the fixed cost to be
a small share of them, and no longer: what they do shows only at their end.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

from penstock.driver.epoch_cost import EpochCost

_REMEMBERED = 5
"""Fixed costs that the usual one is found among."""
_FIRST_RECORDS = 100_000
_FEWEST_RECORDS = 100
_SHORTEST_SECONDS = 1.0
"""Shorter epochs than this make nothing better while a job is behind, as long as they may be so."""
_GROWTH = 4.0
_SHRINKAGE = 0.25
_NEAR = 0.2
"""Work that is so near to what is wanted, as a share of it, changes nothing."""


@dataclass(frozen=True)
class LengthPolicy:
    """What epochs are to be like under load."""

    fixed_share: float
    """The share of an epoch that its fixed cost may take."""
    longest_seconds: float
    """An epoch is to take no longer, even if the fixed cost then takes more of it."""
    most_records: int
    """What a subtask of a source reads at most."""

    def work_seconds(self, fixed: float) -> float:
        """How long an epoch is to work on records, if its fixed cost is this."""
        length = max(fixed / self.fixed_share, _SHORTEST_SECONDS)
        # At least a third of the fixed cost, however short it shall be: else nothing gets done.
        return max(min(length, self.longest_seconds) - fixed, fixed / 3, 0.01)


def next_limit(limit: int, cost: EpochCost, work_seconds: float, policy: LengthPolicy) -> int:
    """How many records a subtask may read in the next epoch, if in the last it was `limit`."""
    ratio = work_seconds / max(cost.working, 1e-6)
    wanted = limit
    if cost.cut_off and abs(ratio - 1) > _NEAR:
        wanted = int(limit * min(max(ratio, _SHRINKAGE), _GROWTH))
    elif not cost.cut_off and cost.records > 0 and ratio < 1 - _NEAR:
        # All was read, and it took too long.
        wanted = min(limit, int(cost.records * max(ratio, _SHRINKAGE)))
    return _within(wanted, policy)


def _within(records: int, policy: LengthPolicy) -> int:
    return max(min(records, policy.most_records), min(_FEWEST_RECORDS, policy.most_records))


class EpochLength:
    """Lives as long as the driver: after a restart it is found anew, within a few epochs."""

    def __init__(self, policy: LengthPolicy) -> None:
        self._policy = policy
        self._fixed: deque[float] = deque(maxlen=_REMEMBERED)
        self.records = min(_FIRST_RECORDS, policy.most_records)
        """What a subtask of a source may read in the next epoch."""

    @property
    def seconds(self) -> float:
        """How long a source may read in the next epoch."""
        usual = statistics.median(self._fixed) if self._fixed else 0.0
        return self._policy.work_seconds(usual)

    def learn(self, cost: EpochCost) -> None:
        """An epoch has been committed."""
        self._fixed.append(cost.fixed)
        self.records = next_limit(self.records, cost, self.seconds, self._policy)

    def lost(self) -> None:
        """An attempt failed, perhaps since it took too long: the next one reads less."""
        self.records = _within(int(self.records * _SHRINKAGE), self._policy)
