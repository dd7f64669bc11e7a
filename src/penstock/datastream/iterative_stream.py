"""Iterations: a part of the program whose results come back to its beginning, as in Flink's Java
API up to 1.20."""

from __future__ import annotations

from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream import connected_streams
from penstock.datastream._data_stream import DataStream, TypeLike
from penstock.datastream._stream_arguments import declared_type
from penstock.datastream.output_tag import OutputTag
from penstock.errors import InvalidArgumentError
from penstock.graph.stream_graph import Chaining, Edge
from penstock.runtime.operators.iteration import LoopHead

__all__ = ["ConnectedIterativeStreams", "IterativeStream"]

_FEEDBACK = "feedback"


class _Loop:
    """The head of a loop in the graph, and what it is closed with."""

    def __init__(self, input: DataStream, head: LoopHead) -> None:
        self._env = input._env
        node = input._add("Iteration", head, chaining=Chaining.HEAD, feedback=())
        self.head = node.id

    def close(self, feedback: Any, wanted: TypeInformation | None) -> None:
        if not isinstance(feedback, DataStream):
            raise InvalidArgumentError.of("what close_with takes", "a DataStream", feedback)
        if feedback._env is not self._env:
            raise InvalidArgumentError("close_with needs a stream of the iteration's environment")
        graph = self._env._graph
        node = graph.node(self.head)
        begins = f"the iteration that begins at {node.location}"
        sources = [edge.source for edge in feedback._edges]
        if self.head in sources:
            raise InvalidArgumentError(
                f"{begins} is closed with itself: nothing happens to a record in it, so each would "
                "go round for ever; close it with a stream that is made from it, by a filter at "
                "least"
            )
        if not any(before.id == self.head for before in graph.upstream_of(sources)):
            raise InvalidArgumentError(
                f"{begins} must be closed with a stream that is made from it, got one that is not"
            )
        if wanted and feedback._type and wanted != feedback._type:
            raise InvalidArgumentError(
                f"{begins} takes back {wanted!r}, got a stream of {feedback._type!r}; map it "
                "first, or begin with iterate().with_feedback_type(...)"
            )
        graph.change(self.head, feedback=(*(node.feedback or ()), *feedback._edges))


class IterativeStream(DataStream):
    """The beginning of an iteration: the input, and what comes back from its end.

    Name, uid and parallelism that are set here are those of the head, under whose uid checkpoints
    keep the records in the loop.
    """

    def __init__(self, input: DataStream, max_wait_time_millis: int) -> None:
        if not isinstance(max_wait_time_millis, int) or max_wait_time_millis < 0:
            raise InvalidArgumentError.of(
                "max_wait_time_millis", "an int from 0 on", max_wait_time_millis
            )
        self._input = input
        self._wait = max_wait_time_millis
        self._loop = _Loop(input, LoopHead(max_wait_time_millis))
        super().__init__(input._env, (Edge(self._loop.head),), input._type)

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """Send the records of a stream, which is made from this one, back to the beginning.

        They enter in the next epoch. Returns the stream. Called again, it adds another one.
        """
        self._loop.close(feedback_stream, self._type)
        return feedback_stream

    def with_feedback_type(self, feedback_type: TypeLike) -> ConnectedIterativeStreams:
        """Another iteration over the same input, in which what comes back is a stream of its own,
        perhaps of another type: the second of two connected streams."""
        return ConnectedIterativeStreams(self._input, feedback_type, self._wait)


class ConnectedIterativeStreams(connected_streams.ConnectedStreams):
    """The input of an iteration and, as the second stream, what comes back from its end."""

    def __init__(
        self, input: DataStream, feedback_type: TypeLike, max_wait_time_millis: int = 0
    ) -> None:
        self._feedback_type = declared_type(feedback_type)
        side = OutputTag(_FEEDBACK, self._feedback_type)
        self._loop = _Loop(input, LoopHead(max_wait_time_millis, side))
        head = self._loop.head
        super().__init__(
            DataStream(input._env, (Edge(head),), input._type),
            DataStream(input._env, (Edge(head, tag=_FEEDBACK),), self._feedback_type),
        )

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """Send the records of a stream back, to be the second of these two; returns that stream."""
        self._loop.close(feedback_stream, self._feedback_type)
        return feedback_stream
