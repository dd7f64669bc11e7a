"""How far the sources of a job have been read, by its base: what has ended, and what tasks are told
of positions and splits. Knows neither epochs nor executors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from penstock.driver.splits import FoundSplits, SplitDiscovery
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan
from penstock.storage.manifest import Manifest


class SourceProgress:
    """The sources of a plan, with the splits that are found while it runs."""

    def __init__(self, plan: PhysicalPlan, splits: SplitDiscovery) -> None:
        self._plan = plan
        self._splits = splits

    def look(self, base: Manifest | None) -> FoundSplits:
        """The splits that were found since the start; sources that are due look for more first."""
        return self._splits.look(lambda uid, split: _is_read(base, uid, split))

    def more_to_come(self) -> tuple[str, ...]:
        """The sources that have more when all that is known of them has been read."""
        return self._splits.more_to_come()

    def exhausted(self, base: Manifest | None) -> bool:
        """Whether every Python source has been read to its end."""
        return all(
            self._read_to_its_end(base, vertex.operators[0])
            for vertex in self._plan.vertices
            if isinstance(vertex.operators[0].operator, PythonSource)
        )

    def ended(
        self, base: Manifest | None, batch: int | None, rows_to_read: Mapping[str, int]
    ) -> Iterator[int]:
        """The vertices of sources that have no more to give. Without a batch, no Spark source has;
        `rows_to_read` are those of Spark's of which that is known."""
        rows = {} if base is None else base.rows_read
        for vertex in self._plan.vertices:
            head = vertex.operators[0]
            if isinstance(head.operator, PythonSource):
                ended = self._read_to_its_end(base, head)
            elif isinstance(head.operator, SparkSource):
                all_read = rows.get(head.uid, 0) >= rows_to_read.get(head.uid, math.inf)
                ended = head.operator.bounded and (batch is None or all_read)
            else:
                continue
            if ended:
                yield vertex.index

    def _read_to_its_end(self, base: Manifest | None, head: PhysicalOperator) -> bool:
        if not head.operator.bounded or head.uid in self._splits.more_to_come():
            return False
        planned = (split.split_id for split in self._plan.splits[head.uid])
        known = (*planned, *self._splits.found().get(head.uid, ()))
        return all(_is_read(base, head.uid, split) for split in known)


def positions_to_tell(base: Manifest | None, found: FoundSplits) -> dict[str, tuple[str, bool]]:
    """Where tasks begin to read, by source and split."""
    positions = {}
    for uid, source in {} if base is None else base.sources.items():
        known = found.get(uid, {})
        for split, position in source.positions.items():
            # Nobody is told of what was found and read: it would be more and more.
            if split not in known or not position[1]:
                positions[f"{uid}|{split}"] = position
    return positions


def splits_to_tell(base: Manifest | None, found: FoundSplits) -> dict[str, list[tuple[int, str]]]:
    """Those of the found ones that are still to be read, by source."""
    return {
        uid: [told for split, told in splits.items() if not _is_read(base, uid, split)]
        for uid, splits in found.items()
    }


def _is_read(base: Manifest | None, uid: str, split: str) -> bool:
    if base is None or uid not in base.sources:
        return False
    return base.sources[uid].positions.get(split, ("", False))[1]
