"""Plays drawings: by hand, row by row, on the harness; or as jobs, cut into epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from drawn_time import END, MARK, TICK, Drawing, Event, Output, drawn_outputs, late

from penstock.common import WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from penstock.datastream.window import EventTimeTrigger
from penstock.runtime.payload import HEADER_SIZE, encode_body
from penstock.runtime.watermarks import MAX_TIMESTAMP
from penstock.testing import KeyedOperatorHarness, ScriptedSource

LATE_TAG = OutputTag("late")
DROPPED = "numLateRecordsDropped"

Build = Callable[[Any], DataStream]
"""From the drawn stream, not yet keyed, to its results."""


def also_on_spark(test: Any) -> Any:
    """Marks a golden test that is to run on Spark, too: one of each kind."""
    test.also_on_spark = True
    return test


# What drawings' programs are made of


def by_key(event: Event) -> str:
    return event.key


def added(one: Event, other: Event) -> Event:
    """The sum of two elements; the first one's time."""
    return one._replace(value=str(one.number + other.number))


class Show(ProcessWindowFunction):
    """The window, and its elements in their order."""

    def process(self, key: str, context: Any, elements: Iterable[Event]) -> Iterable[Any]:
        yield key, context.window(), " ".join(element.value for element in elements)


class ShowAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Event]) -> Iterable[Any]:
        yield "all", context.window(), " ".join(element.value for element in elements)


class ShowSorted(ProcessWindowFunction):
    """For merged windows, whose elements come in no particular order."""

    def process(self, key: str, context: Any, elements: Iterable[Event]) -> Iterable[Any]:
        yield key, context.window(), " ".join(sorted(element.value for element in elements))


def windowed(
    stream: DataStream,
    assigner: Any,
    trigger: Any = None,
    evictor: Any = None,
    lateness: int | None = None,
    aside: bool = False,
) -> Any:
    """The stream by key, in windows; late elements go to the side output if `aside`."""
    found: Any = stream.key_by(by_key).window(assigner)
    if trigger is not None:
        found = found.trigger(trigger)
    if evictor is not None:
        found = found.evictor(evictor)
    if lateness is not None:
        found = found.allowed_lateness(lateness)
    return found.side_output_late_data(LATE_TAG) if aside else found


def shown(assigner: Any, function: Any = None, **settings: Any) -> Build:
    """Windows whose elements are shown."""
    return lambda stream: windowed(stream, assigner, **settings).process(function or Show())


def output_of(result: Any) -> Output:
    """A result: (key, window, text), or (key, text), or an Event."""
    if isinstance(result, Event):
        return Output(result.key, "gives", None, result.value)
    if len(result) == 2:
        return Output(result[0], "gives", None, str(result[1]))
    return Output(result[0], "fires", result[1], str(result[2]))


def _node(stream: DataStream) -> Any:
    """The operator that a stream comes from."""
    return stream._env._graph.node(stream._edges[0].source)


# By hand


class AskedTrigger(EventTimeTrigger):
    """The default trigger, but for its class: what is common has loops of its own."""


class StreamHarness(KeyedOperatorHarness):
    """Drives the last operator of a stream, which must be keyed."""

    @classmethod
    def of(cls, stream: DataStream, asked: bool = False) -> StreamHarness:
        """With `asked`, windows ask their trigger for each element, also where they need not."""
        node = _node(stream)
        operator = node.operator
        if asked and type(operator.trigger) is EventTimeTrigger:
            operator = replace(operator, trigger=AskedTrigger())
        return cls(operator, node.inputs[0].partitioning.select)

    def _operator(self, function: Any, settings: tuple[Any, ...]) -> Any:
        """Given as what it is: an operator, not a function to make one of."""
        return function

    def process_run(self, values: list[Any], timestamps: list[int]) -> None:
        """Several records at once, as they come from an exchange."""
        payload = bytes(HEADER_SIZE) + encode_body(timestamps, values, frozen=False)[0]
        self._attempt(lambda: self._task.consume(0, 0, payload))

    def entries(self) -> list[tuple[bytes, bytes]]:
        """All that the store holds at the end of the epoch."""
        return list(self.snapshot().entries)


def _clock_at(event: Event) -> int:
    """Where the clock is at an event. At marks and ticks the millisecond of their column is over,
    and the timers are due that were set for it."""
    return event.at + {MARK: 2, TICK: 1}.get(event.key, 0)


class Hand:
    """A harness, and how a drawing's events are handed to it."""

    def __init__(self, stream: DataStream, by_clock: bool, asked: bool) -> None:
        self.harness = StreamHarness.of(stream, asked)
        self._by_clock = by_clock
        self._watermark = -(1 << 63)

    def give(self, event: Event) -> list[Output]:
        before = len(self.harness.outputs()), len(self.harness.side_outputs(LATE_TAG))
        self._give(event)
        main = self.harness.outputs()[before[0] :]
        aside = self.harness.side_outputs(LATE_TAG)[before[1] :]
        return [output_of(result) for result in main] + [late(*event) for event in aside]

    def _give(self, event: Event) -> None:
        if event == END:
            self.harness.advance_watermark(MAX_TIMESTAMP)
        elif event.key == MARK and not self._by_clock:
            # One that goes back says nothing; the harness refuses it.
            self._watermark = max(self._watermark, event.at)
            self.harness.advance_watermark(self._watermark)
        elif event.key in (MARK, TICK) or self._by_clock:
            self._move_clock(_clock_at(event))
            if event.key not in (MARK, TICK):
                self.harness.process(event)
        else:
            self.harness.process(event, event.at)

    def _move_clock(self, to: int) -> None:
        if to > self.harness.clock.now():
            self.harness.advance_processing_time(to)

    def restart(self) -> None:
        """Go on from a checkpoint in a new instance."""
        restored = StreamHarness.restore(self.harness.snapshot())
        self.harness.close()
        self.harness = restored


def play_by_hand(
    stream: DataStream,
    drawing: Drawing,
    by_clock: bool = False,
    restarts: bool = False,
    asked: bool = False,
) -> tuple[Drawing, bool]:
    """The drawing with what was found, and whether the store held anything in the end.

    With `restarts` there is one after every event.
    """
    hand = Hand(stream, by_clock, asked)
    found: list[list[Output]] = []
    for row in drawing.rows:
        found.append([])
        for event in row.events:
            found[-1] += hand.give(event)
            if restarts:
                hand.restart()
    left = bool(hand.harness.entries())
    hand.harness.close()
    return drawing.with_outputs(found), left


# As a job


class Marks(WatermarkGenerator):
    """Punctuated: the drawing says where."""

    def on_event(self, event: Event, timestamp: int, output: Any) -> None:
        if event.key == MARK:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


MARKED = WatermarkStrategy.for_generator(Marks).with_timestamp_assigner(lambda event, _: event.at)


def drawn_stream(env: StreamExecutionEnvironment, epochs: Iterable[list[Event]]) -> DataStream:
    """The events of a drawing, each list as an epoch."""
    source = env.from_source(ScriptedSource(epochs), source_name="drawn").uid("drawn")
    timed = source.assign_timestamps_and_watermarks(MARKED).uid("time")
    return timed.filter(lambda event: event.key != MARK).uid("unmarked")


def events_of(drawing: Drawing) -> list[Event]:
    return [event for row in drawing.rows for event in row.events if event != END]


def play_as_job(
    env: StreamExecutionEnvironment, build: Build, epochs: Iterable[list[Event]]
) -> tuple[list[Output], int]:
    """All outputs, and how many elements were dropped for being late."""
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    results = build(drawn_stream(env, epochs))
    if _node(results).fixed_parallelism is None:
        # All else has one subtask, so that what this one sends stays in order.
        results.set_parallelism(2)
    aside = results.get_side_output(LATE_TAG).map(lambda event: late(*event))
    found = list(results.map(output_of).union(aside).execute_and_collect())
    return found, dropped_in(reports)


def dropped_in(reports: list[Any]) -> int:
    counts: dict[str, int] = {}
    for report in reports:
        for uid, groups in report.metrics.items():
            for group in groups:
                for name, value in group.items():
                    if name.endswith(DROPPED):
                        counts[uid + name] = max(counts.get(uid + name, 0), value)
    return sum(counts.values())


def sequences(outputs: Iterable[Output]) -> str:
    """What each key gave, in order; between keys there is none."""
    return "\n".join(drawn_outputs(outputs))


# The clock of a job in this process

_clock = 0


def scripted_time() -> Any:
    """To stand in for the `time` of the epoch loop."""
    import time

    return SimpleNamespace(
        # In the middle of the millisecond, which then does not get lost by rounding.
        time=lambda: (_clock + 0.5) / 1000,
        monotonic=time.monotonic,
        perf_counter=time.perf_counter,
    )


def set_clock(to: int) -> None:
    global _clock
    _clock = to


def moves_clock(event: Event) -> bool:
    """The next epoch will be at this event's time. Whether that was all it was there for."""
    if event.key == TICK:
        set_clock(event.at)
    return event.key == TICK


def clocked_epochs(drawing: Drawing) -> list[list[Event]]:
    """Before every epoch with an element or a mark one that sets the clock for it."""
    epochs = []
    for event in events_of(drawing):
        epochs.append([Event(TICK, "", _clock_at(event))])
        epochs.append([event] if event.key not in (MARK, TICK) else [])
    return epochs
