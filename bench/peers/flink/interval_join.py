"""The interval join as Penstock's API has it, like Flink's for Java. PyFlink's has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.peers.flink.programs import READING, timed
from bench.peers.functions import NEAR_MILLIS, paired, sensor_of
from penstock.common.time import Duration
from penstock.common.typeinfo import Types
from penstock.datastream.functions import ProcessJoinFunction


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield paired(left, right)


def interval_join(rows: dict[str, Any]) -> Any:
    left, right = (
        timed(rows[side]).key_by(sensor_of, key_type=Types.STRING()) for side in ("left", "right")
    )
    return (
        left.interval_join(right)
        .between(Duration.of_millis(0), Duration.of_millis(NEAR_MILLIS))
        .process(Pair(), output_type=READING)
    )
