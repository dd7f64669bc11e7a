"""Batches whose rows Spark combines: planned for the first one, and run on the rows of every one.

To make a plan, and the functions in it, takes longer than a small epoch's work. From one batch to
the next only the rows at the bottom of the plan are others, and those are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from penstock.driver.spark_columns import rows_as_frame, with_child, without_exchange
from penstock.driver.spark_frames import SourceFrames
from penstock.driver.spark_stages import PAYLOAD_AT

_ROWS = "rdd"
_CODE = "WholeStageCodegenExec"


class RowsPlan:
    """A physical plan that is one line from its root down to the rows of an RDD."""

    def __init__(self, above: list[Any], leaf: Any, arguments: dict[str, Any]) -> None:
        self._above = above
        self._leaf = leaf
        self._arguments = arguments
        """What the leaf was made from."""

    @staticmethod
    def of(plan: Any) -> RowsPlan | None:
        """None, if the plan is another."""
        above: list[Any] = []
        while plan.children().size() == 1:
            above.append(plan)
            plan = plan.children().apply(0)
        if plan.children().size():
            return None
        arguments = {
            plan.productElementName(at): plan.productElement(at)
            for at in range(plan.productArity())
        }
        return RowsPlan(above, plan, arguments) if _ROWS in arguments else None

    @property
    def rows(self) -> Any:
        return self._arguments[_ROWS]

    @property
    def bare(self) -> bool:
        """Whether there is nothing but rows, for which Spark may have generated code."""
        return all(node.getClass().getSimpleName() == _CODE for node in self._above)

    def over(self, rows: Any, session: Any) -> Any:
        """The same plan over other rows. All its nodes are new: one that has run would not run
        again."""
        arguments = {**self._arguments, _ROWS: rows}
        array = session.sparkContext._gateway.new_array(
            session._jvm.java.lang.Object, len(arguments)
        )
        for at, argument in enumerate(arguments.values()):
            array[at] = argument
        plan = self._leaf.makeCopy(array)
        for node in reversed(self._above):
            plan = with_child(node, plan, session)
        return plan


class _Planned(NamedTuple):
    aggregation: RowsPlan
    stages: RowsPlan


class CombinedBatches:
    """Runs all stages on batch after batch."""

    def __init__(
        self,
        frames: SourceFrames,
        stages: Callable[[DataFrame], DataFrame],
        planning: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._frames = frames
        self._stages = stages
        self._planning = planning
        self._planned: _Planned | None = None
        self._repeatable = True

    def payloads(self, frame: DataFrame) -> list[bytes]:
        """What the rows of the last stage carry."""
        session: Any = frame.sparkSession
        activate = session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession
        activate(session._jsparkSession)  # new nodes ask for it
        rows = RowsPlan.of(_plan_of(frame))
        if self._planned is None and self._repeatable:
            with self._planning():
                self._planned = self._plan(frame)
            self._repeatable = self._planned is not None
        if self._planned is None or rows is None or not rows.bare:
            with self._planning():
                whole = self._stages(self._frames.of_batch(frame))
            return [row[PAYLOAD_AT] for row in whole.collect()]
        combined = self._planned.aggregation.over(rows.rows, session).execute()
        found = self._planned.stages.over(combined, session).executeCollect()
        return [row.getBinary(PAYLOAD_AT) for row in found]

    def _plan(self, frame: DataFrame) -> _Planned | None:
        """None, if a plan has not the shape that is expected: then each batch is planned."""
        whole = self._frames.combined(frame)
        cut = without_exchange(whole)
        aggregation = None if cut is None else RowsPlan.of(cut)
        if cut is None or aggregation is None:
            return None
        rows = rows_as_frame(cut.execute(), whole)
        stages = RowsPlan.of(_plan_of(self._stages(self._frames.source_stage(rows))))
        return None if stages is None else _Planned(aggregation, stages)


def _plan_of(frame: Any) -> Any:
    return frame._jdf.queryExecution().executedPlan()
