"""SplitStream: Flink's `split(selector).select(names)`, upon side outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.datastream._data_stream import DataStream
from penstock.datastream._stream_arguments import function_or_callable, non_empty
from penstock.datastream.functions import OutputSelector, ProcessFunction, RuntimeContext
from penstock.datastream.output_tag import OutputTag
from penstock.errors import InvalidArgumentError
from penstock.graph.stream_graph import Edge, Node
from penstock.runtime.operators.process import Process

__all__ = ["SplitStream"]


class SplitStream(DataStream):
    """All records, and by `select` those for which the selector gave certain names."""

    def __init__(
        self, origin: DataStream, selector: Callable[[Any], Iterable[str]] | OutputSelector
    ) -> None:
        super().__init__(origin._env, origin._edges, origin._type)
        self._selector = function_or_callable("split", OutputSelector, selector)
        self._node: Node = origin._add(
            "Split",
            Process(self._function({})),
            helper=True,
            parallelism=origin._parallelism_before(),
        )
        self._outputs: dict[str, frozenset[str]] = {}
        """By side output, the names that lead there."""

    def select(self, *output_names: str) -> DataStream:
        """The records for which the selector gave one of the names or more, each of them once."""
        if not output_names:
            raise InvalidArgumentError("select needs at least one name, got none")
        names = frozenset(non_empty("a name of select", name) for name in output_names)
        # One output for each set of names: a record with two of them must come once.
        tag = "split:" + ",".join(sorted(names))
        self._outputs[tag] = names
        operator = Process(self._function(self._outputs))
        self._env._graph.change(self._node.id, operator=operator)
        return DataStream(self._env, (Edge(self._node.id, tag=tag),), self._type)

    def _function(self, outputs: dict[str, frozenset[str]]) -> _Split:
        return _Split(self._selector, outputs)


class _Split(ProcessFunction):
    """Sends each record to the side outputs of its names."""

    def __init__(self, selector: Any, outputs: dict[str, frozenset[str]]) -> None:
        self._selector = selector
        tags = {tag: OutputTag(tag) for tag in outputs}
        self._tags = {
            name: [tags[tag] for tag, held in outputs.items() if name in held]
            for names in outputs.values()
            for name in names
        }

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._selector, OutputSelector):
            self._selector.open(runtime_context)
            self._names_of = self._selector.select
        else:
            self._names_of = self._selector

    def close(self) -> None:
        if isinstance(self._selector, OutputSelector):
            self._selector.close()

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        names = self._names_of(value)
        if isinstance(names, str):
            names = (names,)
        elif not isinstance(names, list | tuple | set | frozenset):
            names = self._checked(names)
        if len(names) == 1:
            (name,) = names
            for tag in self._tags_of(name):
                yield tag, value
            return
        for tag in dict.fromkeys(tag for name in names for tag in self._tags_of(name)):
            yield tag, value

    def _tags_of(self, name: Any) -> list[OutputTag]:
        if not isinstance(name, str):
            raise InvalidArgumentError.of("a name that split's selector gives", "a string", name)
        return self._tags.get(name, [])

    @staticmethod
    def _checked(names: Any) -> list[Any]:
        """Any other iterable; None is the usual slip of a function that forgets a case."""
        if not isinstance(names, Iterable):
            raise InvalidArgumentError.of(
                "what split's selector gives", "a name or names, [] for no output", names
            )
        return list(names)
