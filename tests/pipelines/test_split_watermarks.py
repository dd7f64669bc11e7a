"""Row B4: a strategy given at a source has a watermark for each of its splits."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Duration, Row, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, ProcessFunction
from penstock.datastream.connectors.base import ReadResult, SourceReader
from penstock.testing import ScriptedSource

MIN = -(1 << 63)
FAIL = ScriptedSource.FAIL

# Periodic watermarks at the ends of epochs only: when else depends on how fast the machine is.
AT_ENDS = {"pipeline.auto-watermark-interval": "1 h"}

STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1]
)


class Shown(ProcessFunction):
    """Each record with the watermark that it met."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timer_service().current_watermark()


class Alarm(KeyedProcessFunction):
    """Tells how far time was when its time, 10, had come."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark()


def alarm(env: Any, splits: dict[str, Any], strategy: WatermarkStrategy = STRATEGY) -> int:
    """How far time was when the alarm rang first."""
    stream = env.from_source(ScriptedSource(splits), strategy, "splits")
    return min(stream.key_by(lambda r: "all").process(Alarm()).execute_and_collect())


@pytest.mark.parametrize("parallelism", ["1", "2", "3"])
def test_the_slowest_split_holds_the_others_back(make_env: Any, parallelism: str) -> None:
    splits = {
        "fast": [[("f", 100)], [("f", 200)], [("f", 300)]],
        "slow": [[("s", 10)], [("s", 20)], [("s", 30)]],
    }
    env = make_env({"parallelism.default": parallelism, **AT_ENDS})
    shown = env.from_source(ScriptedSource(splits), STRATEGY, "splits").global_().process(Shown())

    assert sorted(shown.execute_and_collect()) == [
        (("f", 100), MIN),
        (("f", 200), 9),
        (("f", 300), 19),
        (("s", 10), MIN),
        (("s", 20), 9),
        (("s", 30), 19),
    ]


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_split_without_records_yet_holds_time_at_its_beginning(
    make_env: Any, parallelism: str
) -> None:
    splits = {
        "late": [[], [], [("l", 5)], []],
        "early": [[("e", 100)], [("e", 200)], [("e", 300)]],
    }
    env = make_env({"parallelism.default": parallelism, **AT_ENDS})
    shown = env.from_source(ScriptedSource(splits), STRATEGY, "splits").global_().process(Shown())

    assert {met for _, met in shown.execute_and_collect()} == {MIN}


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_where_a_split_was_is_not_told_again_after_a_restart(
    make_env: Any, parallelism: str
) -> None:
    """What records meet is the same whether a task's instance lives on or is made anew."""
    splits = {
        "late": [[], [], [FAIL, ("l", 5)], []],
        "early": [[("e", 100)], [("e", 200)], [("e", 300)]],
    }
    restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 s"}
    env = make_env({"parallelism.default": parallelism, **AT_ENDS, **restarts})
    shown = env.from_source(ScriptedSource(splits), STRATEGY, "splits").global_().process(Shown())

    assert sorted(shown.execute_and_collect()) == [
        (("e", 100), MIN),
        (("e", 200), MIN),
        (("e", 300), MIN),
        (("l", 5), MIN),
    ]


GOES_ON = [[("g", n * 10)] for n in range(1, 41)]


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_finished_split_holds_nobody_back(make_env: Any, parallelism: str) -> None:
    env = make_env({"parallelism.default": parallelism, **AT_ENDS})
    assert alarm(env, {"ends": [[("e", 1)]], "goes on": GOES_ON}) == 19


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_silent_split_holds_time_back_unless_it_is_idle(make_env: Any, parallelism: str) -> None:
    env = make_env({"parallelism.default": parallelism, **AT_ENDS})
    splits = {"silent": [[("s", 1)], *([[]] * 40)], "goes on": GOES_ON}
    idle = STRATEGY.with_idleness(Duration.of_millis(1))

    assert alarm(env, splits) == (1 << 63) - 1
    assert alarm(env, splits, idle) < 400


def test_an_idle_split_that_comes_back_holds_time_again(make_env: Any) -> None:
    """Its records are behind what time has come to meanwhile; time waits for it to catch up."""
    silent, again = [[]] * 30, [[("s", n)] for n in range(2, 12)]
    splits = {"s": [[("s", 1)], *silent, *again], "g": GOES_ON}
    env = make_env({"parallelism.default": "1", **AT_ENDS})
    strategy = STRATEGY.with_idleness(Duration.of_millis(1))
    shown = env.from_source(ScriptedSource(splits), strategy, "splits").global_().process(Shown())

    met = dict(shown.execute_and_collect())
    back = met["g", 330]
    assert back >= 9
    assert {met["g", n * 10] for n in range(33, 41)} == {back}


def resumed(
    restartable_env: Any, collect_until_error: Any, before: str, after: str, build: Any
) -> Any:
    """What comes before and after a failure in the third epoch, of a job that changes meanwhile."""
    splits = {
        "a": [[("a", 100)], [], [], [], [], []],
        "b": [[("b", 50)], [("b", 60)], [FAIL, ("b", 70)], [("b", 80)], [("b", 90)], []],
    }

    def shown(parallelism: str) -> Any:
        env = restartable_env({"parallelism.default": parallelism})
        return build(env, ScriptedSource(splits))

    first, error = collect_until_error(shown(before))
    assert "says FAIL" in str(error)
    return sorted(first), sorted(shown(after).execute_and_collect())


@pytest.mark.parametrize(("before", "after"), [("2", "2"), ("2", "1"), ("2", "3"), ("1", "2")])
def test_a_splits_watermark_moves_with_it(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    """Split a has no more records: only what is stored of it lets time go on."""

    def build(env: Any, source: Any) -> Any:
        return env.from_source(source, STRATEGY).uid("source").global_().process(Shown()).uid("p")

    first, second = resumed(restartable_env, collect_until_error, before, after, build)
    assert first == [(("a", 100), MIN), (("b", 50), MIN), (("b", 60), 49)]
    assert second == [(("b", 70), 59), (("b", 80), 69), (("b", 90), 79)]


@pytest.mark.parametrize(("before", "after"), [("2", "2"), ("2", "1"), ("1", "2")])
def test_a_later_assigner_goes_on_where_the_slowest_was(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    def build(env: Any, source: Any) -> Any:
        assigned = env.from_source(source).uid("s").assign_timestamps_and_watermarks(STRATEGY)
        return assigned.uid("time").global_().process(Shown()).uid("p")

    first, second = resumed(restartable_env, collect_until_error, before, after, build)
    slowest = {"2": [MIN, MIN, 49], "1": [MIN, MIN, 99]}[before]
    assert [met for _, met in first] == slowest
    goes_on = {"22": [59, 69, 79], "21": [59, 69, 79], "12": [99, 99, 99]}[before + after]
    assert [met for _, met in second] == goes_on


class InOrder(ScriptedSource):
    """Each split goes on where the one before it ended."""

    def in_order(self, split: Any) -> bool:
        return True


ONE_AFTER_THE_OTHER = {
    "a": [[("a", 10)], [("a", 20)]],
    "b": [[("b", 30)], [("b", 40)]],
    "c": [[("c", 50)], [("c", 60)]],
}


def in_order(env: Any, splits: dict[str, Any] = ONE_AFTER_THE_OTHER) -> Any:
    stream = env.from_source(InOrder(splits), STRATEGY, "splits").uid("source")
    return stream.global_().process(Shown()).uid("shown")


def test_of_splits_in_order_those_that_wait_do_not_hold_time_back(make_env: Any) -> None:
    """Only one is read at a time, and time stays where it ended until the next has records."""
    shown = in_order(make_env({"parallelism.default": "1", **AT_ENDS}))
    assert list(shown.execute_and_collect()) == [
        (("a", 10), MIN),
        (("a", 20), 9),
        (("b", 30), 19),
        (("b", 40), 29),
        (("c", 50), 39),
        (("c", 60), 49),
    ]


def test_splits_in_order_of_several_subtasks(make_env: Any) -> None:
    """One reads a, then c, the other b: the slower one decides."""
    shown = in_order(make_env({"parallelism.default": "2", **AT_ENDS}))
    met = dict(shown.execute_and_collect())
    assert [met["a", 10], met["b", 30], met["a", 20], met["b", 40]] == [MIN, MIN, 9, 9]
    assert [met["c", 50], met["c", 60]] == [9, 49]


EQUALLY_FAR = {
    "a": [[("a", 10)], [("a", 20)], [("a", 25)]],
    "b": [[("b", 30)], [FAIL, ("b", 40)], [("b", 45)]],
    "c": [[("c", 50)], [("c", 60)]],
    "d": [[("d", 70)], [("d", 80)]],
}
# Of two subtasks one has begun e when the other still is in b, and has d before it.
ONE_AHEAD = {
    "a": [[("a", 10)]],
    "b": [[("b", 20)], [("b", 21)], [("b", 22)], [("b", 23)], [FAIL, ("b", 24)], [("b", 25)]],
    "c": [[("c", 30)]],
    "d": [[("d", 40)], [("d", 41)]],
    "e": [[("e", n)] for n in range(50, 59)],
    "f": [[("f", 70)], [("f", 71)]],
}


@pytest.mark.parametrize("splits", [EQUALLY_FAR, ONE_AHEAD], ids=["equally far", "one ahead"])
@pytest.mark.parametrize(("before", "after"), [("1", "1"), ("1", "2"), ("2", "2"), ("2", "1")])
def test_splits_in_order_through_a_failure(
    restartable_env: Any,
    collect_until_error: Any,
    before: str,
    after: str,
    splits: dict[str, Any],
) -> None:
    """None that was read is late afterwards, whoever reads on, and those that wait still do."""
    env = restartable_env({"parallelism.default": before, **AT_ENDS})
    first, error = collect_until_error(in_order(env, splits))
    assert "says FAIL" in str(error)
    env = restartable_env({"parallelism.default": after, **AT_ENDS})
    second = list(in_order(env, splits).execute_and_collect())
    records = sorted(record for epochs in splits.values() for e in epochs for record in e[-1:])
    assert sorted(record for record, _ in first + second) == records
    assert all(met < time for (_, time), met in first + second)
    # Windows that end before the last split have ended before it was read.
    assert max(met for _, met in second) >= 49


@pytest.mark.parametrize("ahead", [10, 1])
def test_splits_in_order_that_end_with_epochs_are_aligned(make_env: Any, ahead: int) -> None:
    """Between two of them there is none to go by. Whether they are ahead or the others are."""
    times = range(10, 90, 10)
    ordered = {f"o{n}": [[("o", n * ahead)]] for n in times}
    other = {"s": [[("s", n * 10 // ahead)] for n in times]}
    drift, often = Duration.of_millis(30), Duration.of_seconds(1)
    strategy = STRATEGY.with_watermark_alignment("both", drift, often)
    settings = {"penstock.source.max-records-per-epoch": "1", "parallelism.default": "1"}
    env = make_env({**settings, **AT_ENDS})
    stream = env.from_source(InOrder(ordered), strategy, "ordered")
    stream = stream.union(env.from_source(ScriptedSource(other), strategy, "other"))
    found = [record for record, _ in stream.global_().process(Shown()).execute_and_collect()]
    fast, slow = ("o", "s") if ahead == 10 else ("s", "o")
    assert found.index((fast, 300)) > found.index((slow, 60))


def test_splits_in_order_that_are_aligned(make_env: Any) -> None:
    """One that must wait for another source is not passed by the next."""
    fast = {"a": [[("a", 100)], [("a", 200)]], "b": [[("b", 300)]]}
    slow = {"s": [[("s", n)] for n in range(10, 60, 10)]}
    drift, often = Duration.of_millis(30), Duration.of_seconds(1)
    strategy = STRATEGY.with_watermark_alignment("both", drift, often)
    env = make_env({"parallelism.default": "1", **AT_ENDS})
    ahead = env.from_source(InOrder(fast), strategy, "fast")
    stream = ahead.union(env.from_source(ScriptedSource(slow), strategy, "slow"))
    found = [record for record, _ in stream.global_().process(Shown()).execute_and_collect()]
    assert [record for record in found if record[0] != "s"] == [("a", 100), ("a", 200), ("b", 300)]
    assert found.index(("a", 200)) > found.index(("s", 40))


def test_operators_of_the_sources_chain_know_where_time_was(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def build(env: Any, source: Any) -> Any:
        return env.from_source(source, STRATEGY).uid("source").process(Shown()).uid("p")

    _, second = resumed(restartable_env, collect_until_error, "1", "1", build)
    assert second == [(("b", 70), 59), (("b", 80), 69), (("b", 90), 79)]


def test_assigners_see_records_of_the_declared_type(make_env: Any) -> None:
    kind = Types.ROW_NAMED(["name", "time"], [Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda row, _: row.time
    )
    source = ScriptedSource([[Row("a", 7)]])
    shown = make_env().from_source(source, strategy, "rows", kind).process(Stamps())
    assert list(shown.execute_and_collect()) == [7]


class FromItsSource(SourceReader):
    def read(self, split: Any, position: Any, max_records: int) -> ReadResult:
        return ReadResult(["a", "b"], 2, finished=True, timestamps=[30, 20])


class WithTimestamps(ScriptedSource):
    def create_reader(self, context: Any) -> SourceReader:
        return FromItsSource()


@pytest.mark.parametrize("place", ["source", "later"])
def test_timestamps_that_the_source_gives(make_env: Any, place: str) -> None:
    """As those of Kafka: an assigner is not needed, and gets them if there is one."""
    env = make_env()
    plain = WatermarkStrategy.for_monotonous_timestamps()
    shifted = plain.with_timestamp_assigner(lambda value, given: given + 1)
    found = []
    for strategy in (plain, shifted):
        at_source = place == "source"
        stream = env.from_source(WithTimestamps([[1]]), strategy if at_source else None)
        if not at_source:
            stream = stream.map(str.upper).assign_timestamps_and_watermarks(strategy)
        found.append(list(stream.global_().process(Stamps()).execute_and_collect()))
    assert found == [[30, 20], [31, 21]]


class Stamps(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.timestamp()
