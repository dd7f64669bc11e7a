"""Row C11: when the last window has gone, the store holds nothing of any of them.

That every single drawing leaves an empty store is checked where it is played by hand; here a whole
job's checkpoint is looked at, on both executors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drawn_runs import ShowSorted, StreamHarness, added, by_key
from drawn_time import Event
from stored_state import stored_entries

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import ScriptedSource

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(3))
DYNAMIC = EventTimeSessionWindows.with_dynamic_gap(lambda event: 1000 * (1 + event.number))
DELTA = DeltaTrigger.of(2, lambda old, new: new.number - old.number)

EVENTS = [Event(f"k{n % 5}", str(n * 7 % 10), n * 650 + n * 7919 % 3000) for n in range(60)]
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_seconds(2)
).with_timestamp_assigner(lambda event, _: event.at)


class Remembers(ShowSorted):
    """With state of the window, which it clears."""

    SEEN = ValueStateDescriptor("seen")

    def process(self, key: str, context: Any, elements: Any) -> Any:
        context.window_state().get_state(self.SEEN).update(True)
        return super().process(key, context, elements)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.SEEN).clear()


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Event, accumulator: int) -> int:
        return accumulator + value.number

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


def windows_of(stream: Any) -> dict[str, Any]:
    """Each kind of contents, of assigners, and of state that triggers, evictors and users keep."""
    keyed = stream.key_by(by_key)
    late = 4000
    return {
        "elements": keyed.window(TUMBLING).allowed_lateness(late).process(Remembers()),
        "reduced": keyed.window(SLIDING).reduce(added),
        "aggregated": keyed.window(SLIDING).allowed_lateness(late).aggregate(Sum()),
        "sessions": keyed.window(SESSIONS).allowed_lateness(late).process(ShowSorted()),
        "sessionsums": keyed.window(SESSIONS).aggregate(Sum()),
        "dynamic": keyed.window(DYNAMIC).process(ShowSorted()),
        "sessioncounts": keyed.window(SESSIONS).trigger(CountTrigger.of(2)).reduce(added),
        "early": keyed.window(TUMBLING)
        .trigger(ContinuousEventTimeTrigger.of(Time.seconds(1)))
        .reduce(added, Remembers()),
        "purged": keyed.window(TUMBLING).trigger(PurgingTrigger.of(DELTA)).process(ShowSorted()),
        "evicted": keyed.window(SLIDING).evictor(CountEvictor.of(2, True)).process(Remembers()),
        "evictedsessions": keyed.window(SESSIONS).evictor(CountEvictor.of(2)).process(ShowSorted()),
        "end": keyed.window(GlobalWindows.create_with_end_of_stream_trigger()).process(
            ShowSorted()
        ),
        "all": stream.window_all(TUMBLING).reduce(added),
        "joined": stream.join(stream)
        .where(by_key)
        .equal_to(by_key)
        .window(TUMBLING)
        .apply(lambda one, other: one),
    }


def test_the_last_epoch_leaves_no_state(restartable_env: Any, tmp_path: Path) -> None:
    env = restartable_env({"penstock.source.max-records-per-epoch": "100"})
    script = [EVENTS[first : first + 15] for first in range(0, len(EVENTS), 15)]
    stream = env.from_source(ScriptedSource(script), STRATEGY, "events").set_parallelism(1)
    left: list[Any] = []
    env.add_epoch_listener(
        lambda report: left.append(stored_entries(str(tmp_path / "checkpoints"), "job"))
    )
    kinds = windows_of(stream)
    first, *others = [kind.uid(name).map(lambda _, name=name: name) for name, kind in kinds.items()]

    given = list(first.union(*others).execute_and_collect())

    assert {name for name in kinds if name not in given} == set()
    # While it ran, there was something of every kind.
    assert set(left[0]) == set(kinds)
    assert left[-1] == {}


def test_full_count_windows_leave_nothing_but_the_count() -> None:
    """A key may always go on, and then its next window must have the next number."""
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = env.from_elements(1).key_by(by_key).count_window(3)
    with StreamHarness.of(windows.process(ShowSorted())) as harness:
        for number in range(6):
            harness.process(Event("a", "1", number), number)
        assert len(harness.outputs()) == 2
        assert len(harness.entries()) == 1
