"""Records of two streams on their way to a common window, each marked by its stream.

A marked record is a plain tuple (stream, record): whoever makes, sends and parts them knows that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import OpenOperator, OperatorHost


@dataclass(frozen=True)
class Mark:
    """Emits records as those of a stream."""

    stream: int

    def open(self, host: OperatorHost) -> OpenOperator:
        stream, emit = self.stream, host.emit

        def process(value: Any) -> None:
            emit((stream, value))

        operator = OpenOperator()
        operator.process = process
        operator.run = before(host.emit_run, Step("value = ($stream, value)", stream=stream))
        return operator
