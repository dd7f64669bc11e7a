"""Which operators are left to Spark, and why others are not."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from penstock.common.time import Duration
from penstock.common.watermark_strategy import ColumnTime, WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream._records import RecordMaker
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidProgramError
from penstock.graph.location import Location
from penstock.graph.partitioning import ByKey, Forward, Partitioning, Rebalance
from penstock.graph.stream_graph import Edge, Node, StreamGraph
from penstock.plan.columnar import in_lanes
from penstock.plan.explain import explain_json, explain_mermaid, explain_text
from penstock.plan.svg import explain_svg
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.fields import getter, tuple_getter
from penstock.runtime.operators.columns import ColumnFilter, ColumnMap
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.operators.stateless import Map
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.operators.windows import Windowing
from penstock.runtime.partials import Combined, KeyColumns
from penstock.runtime.physical import JobSettings

_SECOND = Duration.of_seconds(1)
_HERE = Location("job.py", 1)
_BY_ID = ByKey(getter("id"))
_COUNT = agg.of(n=agg.count())
_IN_COLUMNS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ColumnTime("a column")
)
_WITHOUT_WATERMARKS = WatermarkStrategy.no_watermarks().with_timestamp_assigner(
    ColumnTime("a column")
)


@dataclass(frozen=True)
class _Frame:
    """As much of a DataFrame as the plan looks at."""

    dtypes: list[tuple[str, str]]


_FRAME = _Frame([("id", "string"), ("temp", "double"), ("price", "decimal(10,2)"), ("n", "bigint")])
_RECORD = RecordMaker(("id", "temp", "price", "n"))


class _Program:
    """source → columns → timestamps → windows, with whatever a case has otherwise."""

    def __init__(
        self,
        record: Any = _RECORD,
        strategy: Any = _IN_COLUMNS,
        by: ByKey = _BY_ID,
        to_time: Partitioning | None = None,
        output_type: Any = None,
    ) -> None:
        self.graph = StreamGraph()
        source = SparkSource("frame", record, True, _FRAME)
        self.source = self._add("Source", source)
        columns = ColumnFilter(("c",), _FRAME, record)
        self.filter = self._add("Filter", columns, self.source, output_type=output_type)
        self.time = self._add("Time", AssignTime(strategy), self.filter, by=to_time)
        self.by = by

    def _add(
        self,
        name: str,
        operator: Any,
        *inputs: Node,
        by: Partitioning | None = None,
        **settings: Any,
    ) -> Node:
        edges = tuple(Edge(node.id, by or Forward()) for node in inputs)
        return self.graph.add(name, operator, edges, location=_HERE, **settings)

    def also(self, operator: Any, before: Node) -> None:
        self._add("Other", operator, before)

    def windowed(self, combine: Any = _COUNT, **changes: Any) -> dict[str, Any]:
        """The operators after the rewrite, by name, and why the windows are in their lane."""
        return self.read_by((Edge(self.time.id, self.by),), combine, **changes)

    def read_by(
        self,
        edges: tuple[Edge, ...],
        combine: Any = _COUNT,
        event_time_order: bool = False,
        ordered_everywhere: bool = False,
        unchained: Node | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        """The same, of windows that read other edges."""
        size = TumblingEventTimeWindows.of(_SECOND)
        windowing = Windowing(size, EventTimeTrigger(), None, 0, None, combine, None, None)
        self.graph.add(
            *("Window", replace(windowing, **changes), edges),
            location=_HERE,
            event_time_order=event_time_order,
        )
        heads = dict.fromkeys((node.id for node in self.graph.nodes), self.source.id)
        if unchained is not None:
            heads[unchained.id] = unchained.id
        nodes, lanes = in_lanes(self.graph.nodes, heads, ordered_everywhere)
        return {node.name: node for node in nodes} | {"lane": str(lanes[nodes[-1].id])}


def test_combined() -> None:
    found = _Program().windowed(agg.of(n=agg.count(), mean=agg.avg("temp")))

    assert found["lane"] == "columnar, partial results merged"
    source, window = found["Source"].operator, found["Window"]
    assert isinstance(source.combined, Combined)
    assert source.combined.keys == (0,)
    assert source.combined.slide == 1000
    assert [step.frame for step in source.steps] == [_FRAME]
    assert source.time_column == "a column"
    assert window.operator.combined
    assert window.inputs[0].partitioning.select == KeyColumns(1, several=False)
    assert found["Time"].operator.newest == 2


def test_slices_of_sliding_windows() -> None:
    """Records are combined by slide, not by size, and slices begin where windows do."""
    assigner = SlidingEventTimeWindows.of(_SECOND, Duration.of_millis(250), Duration.of_millis(70))
    combined = _Program().windowed(assigner=assigner)["Source"].operator.combined
    assert (combined.slide, combined.offset) == (250, 70)


def test_timestamps_of_the_source_itself() -> None:
    """Its rows stand for many records, so its watermark moves when the epoch ends."""
    program = _Program()
    source = SparkSource("frame", _RECORD, True, _FRAME, AssignTime(_IN_COLUMNS))
    program.graph = StreamGraph()
    program.time = program._add("Source", source)

    found = program.windowed()

    assert found["lane"] == "columnar, partial results merged"
    assert found["Source"].operator.time.newest == 2
    assert found["Source"].operator.time_column == "a column"


def test_ranks_are_columns_too() -> None:
    combined = _Program().windowed(agg.of(top=agg.max_by("id", "temp")))["Source"].operator.combined
    assert [partial.columns for partial in combined.partials] == [(1, 0)]


def test_a_result_that_two_aggregates_need_is_computed_once() -> None:
    combine = agg.of(mean=agg.avg("temp"), total=agg.sum("temp"), n=agg.count("temp"))
    combined = _Program().windowed(combine)["Source"].operator.combined
    assert len(combined.partials) == 2
    assert combined.parts == (("avg", (0, 1)), ("sum", (0,)), ("count", (1,)))


def test_keys_of_several_fields() -> None:
    by = ByKey(tuple_getter([getter("n"), getter(0)]))
    combined = _Program(by=by).windowed()["Source"].operator.combined
    assert (combined.keys, combined.several) == ((3, 0), True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"assigner": EventTimeSessionWindows.with_gap(_SECOND)},
            "EventTimeSessionWindows are no windows at fixed places",
        ),
        (
            {"assigner": SlidingEventTimeWindows.of(_SECOND, Duration.of_millis(300))},
            "its windows are not made of whole slides",
        ),
        ({"trigger": CountTrigger(3)}, "a trigger of its own"),
        ({"evictor": CountEvictor(3)}, "an evictor needs single records"),
        ({"allowed_lateness": 5}, "every late record fires"),
        ({"late_tag": OutputTag("late")}, "late records go to a side output"),
        ({"combine": agg.of(t=agg.sum("price"))}, r"sum('price') over a column of type decimal"),
        ({"combine": agg.of(t=agg.sum("nothing"))}, "have no field 'nothing'"),
        ({"combine": agg.of(t=agg.min_by("id", "price"))}, "over a column of type decimal"),
        ({"event_time_order": True}, "put in order of time"),
        ({"ordered_everywhere": True}, "put in order of time"),
    ],
)
def test_windows_left_to_python(changes: dict[str, Any], reason: str) -> None:
    found = _Program().windowed(**changes)
    assert found["lane"].startswith("Python, since ")
    assert reason in found["lane"]
    assert found["Source"].operator.combined is None
    assert not found["Window"].operator.combined


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"by": ByKey(len)}, "its key is computed by a Python function"),
        ({"by": ByKey(getter("temp"))}, "the key 'temp' is a column of type double"),
        ({"by": ByKey(getter("id"), "a type")}, "a type is declared"),
        ({"strategy": WatermarkStrategy.for_monotonous_timestamps()}, "timestamps are no Column"),
        ({"strategy": _IN_COLUMNS.with_idleness(_SECOND)}, "goes by the clock"),
        ({"strategy": _WITHOUT_WATERMARKS}, "watermarks are made from single records"),
        ({"to_time": Rebalance()}, "are sent to 'Time' (job.py:1) one by one"),
        ({"output_type": "a type"}, "a type is declared"),
        ({"record": RecordMaker(("id", "id", "price", "n"))}, "are objects of a class"),
    ],
)
def test_streams_left_to_python(program: dict[str, Any], reason: str) -> None:
    assert reason in _Program(**program).windowed()["lane"]


def test_other_sources_and_readers() -> None:
    beside = _Program()
    beside._add("Other source", SparkSource("frame", _RECORD, True, _FRAME))
    assert "the job has other sources" in beside.windowed()["lane"]
    shared = _Program()
    shared.also(Map(len), shared.time)
    assert "'Time' (job.py:1) is also read by others" in shared.windowed()["lane"]
    looped = _Program()
    looped._add("Loop", Map(len), feedback=(Edge(looped.time.id),))
    assert "'Time' (job.py:1) is also read by others" in looped.windowed()["lane"]


def test_windows_that_read_no_single_stream() -> None:
    twice = _Program()
    edge = Edge(twice.time.id, _BY_ID)
    assert "does not read just one stream" in twice.read_by((edge, edge))["lane"]
    beside = _Program()
    late = Edge(beside.time.id, _BY_ID, tag="late")
    assert "does not read just one stream" in beside.read_by((late,))["lane"]


def test_a_python_function_between() -> None:
    program = _Program()
    program.time = program._add("Map", Map(len), program.time)
    assert "'Map' (job.py:1) before it is done in Python" in program.windowed()["lane"]


def test_operators_that_are_not_chained() -> None:
    """Batches stay whole in a chain, and through the exchange by key behind it."""
    for at in ("filter", "time"):
        program = _Program()
        unchained = getattr(program, at)
        lane = program.windowed(unchained=unchained)["lane"]
        assert f"'{unchained.name}' (job.py:1) is not chained to what is before it" in lane


def test_chains_are_those_of_the_plan() -> None:
    settings = JobSettings("job", "job", "run", "/c", "/l", "memory", 1, 1, 1.0, False)
    program = _Program()
    program.windowed()

    for chaining, lane in ((True, "[columnar, partial results merged]"), (False, "not chained")):
        plan = translate(program.graph.nodes, PlanDefaults(2, chaining=chaining), settings)
        assert lane in explain_text(plan)


def test_columns_make_the_records_of_the_source() -> None:
    program = _Program()
    mapped = RecordMaker(("n",))
    program.time = program._add("Map", ColumnMap(("c",), _FRAME, mapped), program.filter)
    program.graph.change(program.filter.id)
    nodes = [node for node in program.graph.nodes if node.name != "Time"]
    source = in_lanes(tuple(nodes), {})[0][0].operator
    assert [type(step) for step in source.steps] == [ColumnFilter, ColumnMap]
    assert source.record == mapped


def test_columns_on_one_of_two_branches() -> None:
    program = _Program()
    program.also(Map(len), program.source)
    with pytest.raises(InvalidProgramError, match=r"'Source' .* is read by other operators too"):
        program.windowed()


def test_explain_shows_lanes() -> None:
    program = _Program()
    program.windowed(trigger=CountTrigger(3))
    settings = JobSettings("job", "job", "run", "/c", "/l", "memory", 1, 1, 1.0, False)
    plan = translate(program.graph.nodes, PlanDefaults(1), settings)

    text, document = explain_text(plan), json.loads(explain_json(plan))

    assert "at job.py:1  [columnar]" in text
    assert "[Python, since it has a trigger of its own]" in text
    assert document["nodes"][1]["lane"] == "columnar"
    assert document["nodes"][3]["lane"] == "Python, since it has a trigger of its own"
    assert "<br/>columnar" in explain_mermaid(plan)
    assert "job.py:1 · columnar" in explain_svg(plan)
    assert "since it has a trigger of its own" in explain_svg(plan)
