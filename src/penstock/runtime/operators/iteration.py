"""The head of a loop: lets the input in, and what the loop has sent back.

How records get back here, an epoch later, is the task's affair (`loop_records`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.datastream.output_tag import OutputTag
from penstock.runtime.operators.base import Input, OpenOperator, OperatorHost, one_by_one

FEEDBACK_INPUT = 1
"""The input of a head by which records come back; the other is 0."""


@dataclass(frozen=True)
class LoopHead:
    """Emits all records of both inputs; those that come back by a side output if there is one."""

    max_wait_millis: int = 0
    """How long the job waits for records in an empty loop when its input has ended."""
    side: OutputTag | None = None
    needs_clock: ClassVar[bool] = True
    """The records in a loop must go round even while no others come."""

    def open(self, host: OperatorHost) -> OpenHead:
        return OpenHead(self.side, host)


class OpenHead(OpenOperator):
    """A head at work."""

    def __init__(self, side: OutputTag | None, host: OperatorHost) -> None:
        forward: Input = host.emit, host.emit_run
        self.process, self.run = forward
        self.inputs = forward, forward if side is None else _to_side(side, host)
        self.came_back = 0
        """Records that came back in this epoch, to this subtask."""
        host.context.get_metrics_group().gauge("numRecordsInLoop", lambda: self.came_back)

    def begin_epoch(self) -> None:
        self.came_back = 0


def _to_side(side: OutputTag, host: OperatorHost) -> Input:
    emit_side = host.emit_side

    def process(value: Any) -> None:
        emit_side(side, value)

    return process, one_by_one(process)
