"""The end of a program on PyFlink. Penstock has a sink instead, which PyFlink's API has not."""

from __future__ import annotations

from typing import Any

from pyflink.datastream.functions import FlatMapFunction, RuntimeContext

from bench.peers.probe import Probe

_FEW = 100
"""A worker process may be ended before it is closed: up to so many answers are written at once."""


class Answers(FlatMapFunction):
    """Emits nothing, so that no answer has to go back to the JVM."""

    def __init__(self, directory: str, mark: int, position_of: Any, weight_of: Any) -> None:
        self._arguments = (directory, mark, position_of, weight_of)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._probe = Probe(*self._arguments)

    def flat_map(self, value: Any) -> Any:
        self._probe.see(value)
        if self._probe.outputs <= _FEW:
            self._probe.write()
        return ()

    def close(self) -> None:
        self._probe.write()
