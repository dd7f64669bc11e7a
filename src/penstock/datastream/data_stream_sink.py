"""The end of a stream, for settings of the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datastream._operator_settings import OperatorSettings
from penstock.graph.stream_graph import Node

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["DataStreamSink"]


class DataStreamSink(OperatorSettings):
    """A sink in the program; settings return it, so that they can be strung together."""

    def __init__(self, env: StreamExecutionEnvironment, node_id: int) -> None:
        self._env = env
        self._node_id = node_id

    def _operator(self, method: str) -> Node:
        return self._env._graph.node(self._node_id)
