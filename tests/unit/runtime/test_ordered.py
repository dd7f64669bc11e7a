"""Event-time order against a tiny model: sort by time, and let the timers in between."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.datastream import KeyedProcessFunction
from penstock.graph.partitioning import ByKey
from penstock.runtime.operators.base import OpenOperator, OperatorHost, one_by_one
from penstock.runtime.operators.ordered import Ordered
from penstock.runtime.operators.process import Process
from penstock.runtime.payload import HEADER_SIZE, encode_body
from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP, WATERMARK
from penstock.state.keys import encode_key
from penstock.testing.clock import ManualClock
from penstock.testing.harness_task import HarnessTask, Surroundings

TOKEN = "00" * 8


class SetsTimers(KeyedProcessFunction):
    """A record is (key, timers before and behind its time, number)."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        for offset in value[1]:
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + offset)
        yield "record", value[2], ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        watermark = ctx.timer_service().current_watermark()
        yield "timer", ctx.get_current_key(), timestamp, watermark


class Model:
    """The same on a list."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self._timers: set[Any] = set()
        self._watermark = MIN_TIMESTAMP

    def run(self, records: list[Any]) -> list[Any]:
        """Of (time, key, producer, number, timers)."""
        in_order = sorted(records, key=lambda r: (r[0], encode_key(r[1]), r[2], r[3]))
        for time, together in groupby(in_order, key=lambda r: r[0]):
            self._advance(time - 1)
            for _, key, _, number, offsets in together:
                self.outputs.append(("record", number, time, time - 1))
                self._timers |= {(time + offset, encode_key(key), key) for offset in offsets}
        self._advance(MAX_TIMESTAMP)
        return self.outputs

    def _advance(self, to: int) -> None:
        while self._timers and min(self._timers)[0] <= to:
            time, _, key = min(self._timers)
            self._timers.remove((time, _, key))
            self._watermark = max(self._watermark, time)
            self.outputs.append(("timer", key, time, self._watermark))
        self._watermark = to


class Driven:
    """An operator in order, inside a task."""

    def __init__(self, operator: Any = None) -> None:
        self.around = Surroundings(ManualClock())
        self.operator = Ordered(operator or Process(SetsTimers()))
        self.open()

    def open(self) -> None:
        self.task = HarnessTask(self.operator, "f", (ByKey(lambda r: r[0]),), None, self.around)
        self.task.begin(self.around.order(), TOKEN)
        if self.around.watermark > MIN_TIMESTAMP:
            self.task.advance_watermark(self.around.watermark)

    def send(self, producer: int, records: list[tuple[int, Any]]) -> None:
        times, values = [time for time, _ in records], [value for _, value in records]
        body, _ = encode_body(times, values, frozen=False)
        self.task.consume(0, producer, bytes(HEADER_SIZE) + body)

    def advance(self, to: int) -> None:
        self.around.watermark = to
        self.task.advance_watermark(to)

    def end_epoch(self, new_instance: bool = False) -> None:
        self.task.end()
        self.around.epoch += 1
        if new_instance:
            self.open()
        else:
            self.task.begin(self.around.order(), TOKEN)


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["a", "b", 3]),
        st.integers(0, 2),
        st.lists(st.integers(-4, 12), max_size=2),
    ),
    max_size=30,
)
BREAKS = st.lists(st.sampled_from(["watermark", "epoch", "new instance", "nothing"]), max_size=60)


@settings(deadline=None)
@given(RECORDS, BREAKS)
def test_cuts_make_no_difference(drawn: Any, breaks: list[str]) -> None:
    records = [(time, key, producer, n, offsets)
               for n, (time, key, producer, offsets) in enumerate(drawn)]  # fmt: skip
    driven = Driven()
    for at, (time, key, producer, number, offsets) in enumerate(records):
        driven.send(producer, [(time, (key, offsets, number))])
        what = breaks[at] if at < len(breaks) else "nothing"
        if what == "watermark":
            # As far as may be: nothing that is still to come is late.
            to_come = [record[0] for record in records[at + 1 :]]
            driven.advance(max(driven.around.watermark, min(to_come, default=50) - 1))
        elif what != "nothing":
            driven.end_epoch(new_instance=what == "new instance")
    driven.advance(MAX_TIMESTAMP)
    driven.end_epoch()

    assert driven.around.outputs == Model().run(records)
    assert list(driven.around.store.scan(b"")) == []


class Acts:
    """An operator that does something at every watermark, and cannot tell when it will."""

    def open(self, host: OperatorHost) -> OpenOperator:
        return _OpenActs(host)


class _OpenActs(OpenOperator):
    def __init__(self, host: OperatorHost) -> None:
        self.process = host.emit
        self._host = host

    def control(self, control: Any) -> None:
        kind, time = control
        if kind == WATERMARK:
            self._host.emit(("watermark", time))
        super().control(control)


def test_an_operator_that_cannot_tell_when_it_acts_is_told_of_every_step() -> None:
    driven = Driven(Acts())
    driven.send(0, [(20, ("a", 20)), (10, ("a", 10))])
    driven.advance(15)
    driven.advance(30)
    assert driven.around.outputs == [
        ("watermark", 9),
        ("a", 10),
        ("watermark", 15),
        ("watermark", 15),
        ("watermark", 19),
        ("a", 20),
        ("watermark", 30),
        ("watermark", 30),
    ]


def test_what_follows_hears_of_the_watermarks_that_arrive() -> None:
    driven = Driven()
    heard: list[Any] = []
    driven.task.operators[0].pass_on = heard.append
    driven.send(0, [(20, ("a", [1, 5], 0)), (10, ("a", [3], 1))])
    driven.advance(15)
    driven.advance(30)
    assert heard == [(WATERMARK, 15), (WATERMARK, 30)]


def test_records_between_timers_are_one_run() -> None:
    """Without timers, nothing but a run of all that is due is cheap enough."""
    runs: list[int] = []

    class Counts:
        def open(self, host: OperatorHost) -> OpenOperator:
            operator = OpenOperator()
            operator.process = host.emit
            operator.run = lambda values: runs.append(len(list(values)))
            return operator

    driven = Driven(Counts())
    driven.send(0, [(time, ("a", time)) for time in range(50)])
    driven.advance(100)
    assert runs == [50]


class TwoInputs:
    """Marks records with the input that they came by."""

    def open(self, host: OperatorHost) -> OpenOperator:
        def taking(name: str) -> Any:
            def process(value: Any) -> None:
                host.emit((name, value))

            return process, one_by_one(process)

        operator = OpenOperator()
        operator.inputs = (taking("left"), taking("right"))
        operator.process, operator.run = operator.inputs[0]
        return operator


def test_the_inputs_of_an_operator_with_two_wait_together() -> None:
    driven = Driven(TwoInputs())
    ordered, scope = driven.task.operators[0], driven.task._scope

    def send(index: int, times: list[int]) -> None:
        def stamped() -> Any:
            for scope.timestamp in times:
                yield scope.timestamp

        scope.key, scope.channel = "k", (index, index, 0)
        ordered.inputs[index][1](stamped())

    send(1, [4, 2, 9])
    send(0, [3, 1, 4])
    driven.advance(5)
    send(1, [5])  # late
    driven.advance(10)
    assert driven.around.outputs == [
        ("left", 1),
        ("right", 2),
        ("left", 3),
        ("left", 4),
        ("right", 4),
        ("right", 5),
        ("right", 9),
    ]
