"""Records of two streams on their way to a common window, each marked by its stream.

A marked record is a plain tuple (stream, record): whoever makes, sends and parts them knows that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import OpenOperator, OperatorHost


@dataclass(frozen=True)
class Mark:
    """Emits records as those of a stream."""

    kind: ClassVar = "Map"
    """As it was once: by this, uids are made that a program does not give."""
    stream: int

    def open(self, host: OperatorHost) -> OpenOperator:
        stream, emit = self.stream, host.emit

        def process(value: Any) -> None:
            emit((stream, value))

        operator = OpenOperator()
        operator.process = process
        operator.run = before(host.emit_run, Step("value = ($stream, value)", stream=stream))
        return operator
