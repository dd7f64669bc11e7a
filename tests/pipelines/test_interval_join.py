"""Row D3: the interval join.

::

    time    0   1   2   3   4   5   6   7
    left    L       L   L               L       each with its partners between -2 and +1
    right   R   R           R   R   R
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from late_records import late_records
from stored_state import stored_entries

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import (
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from penstock.driver.epoch_report import EpochReport
from penstock.errors import InvalidArgumentError, UserFunctionError
from penstock.testing import ScriptedSource

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}
LATE_LEFT, LATE_RIGHT = OutputTag("late left"), OutputTag("late right")
EQUAL = OutputTag("equal", Types.STRING())


def by_time(out_of_order: int = 0) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(out_of_order).with_timestamp_assigner(
        lambda record, _: record[1]
    )


def scripted(env: StreamExecutionEnvironment, script: Any, uid: str, strategy: Any = None) -> Any:
    # In one subtask: another would have no records, and hold the watermark back.
    source = env.from_source(ScriptedSource(script), strategy or by_time(), uid)
    return source.set_parallelism(1).uid(uid)


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        assert ctx.get_left_timestamp() == left[1]
        assert ctx.get_right_timestamp() == right[1]
        assert ctx.get_timestamp() == max(left[1], right[1])
        yield left[1], right[1]


LEFT, RIGHT = (0, 2, 3, 7), (0, 1, 4, 5, 6)


def partners(lower: int, upper: int) -> list[tuple[int, int]]:
    return sorted((a, b) for a in LEFT for b in RIGHT if a + lower <= b <= a + upper)


@pytest.mark.parametrize("epochs", [1, 5])
@pytest.mark.parametrize(("lower", "upper"), [(-2, 1), (0, 0), (1, 3), (-3, -1), (-100, 100)])
def test_bounds(env: StreamExecutionEnvironment, lower: int, upper: int, epochs: int) -> None:
    """Whichever side comes first; bounds of either sign."""

    def script(times: Any) -> Any:
        records = [("k", time) for time in times]
        return [records] if epochs == 1 else [[record] for record in records]

    left = scripted(env, script(LEFT), "left").key_by(0)
    right = scripted(env, script(RIGHT), "right").key_by(0)

    pairs = left.interval_join(right).between(lower, upper).process(Pair())

    assert sorted(pairs.execute_and_collect()) == partners(lower, upper)


def test_exclusive_bounds(env: StreamExecutionEnvironment) -> None:
    left = scripted(env, [[("k", t) for t in LEFT]], "left").key_by(0)
    right = scripted(env, [[("k", t) for t in RIGHT]], "right").key_by(0)
    joined = left.interval_join(right).between(-2, 1)

    def found(bounded: Any, which: str) -> Any:
        return bounded.process(Pair()).map(lambda pair, which=which: (which, *pair))

    streams = found(joined.lower_bound_exclusive(), "lower").union(
        found(joined.upper_bound_exclusive(), "upper"),
        found(joined.lower_bound_exclusive().upper_bound_exclusive(), "both"),
    )

    expected = {"lower": partners(-1, 1), "upper": partners(-2, 0), "both": partners(-1, 0)}
    assert sorted(streams.execute_and_collect()) == sorted(
        (which, *pair) for which, pairs in expected.items() for pair in pairs
    )


class Timestamp(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield *value, ctx.timestamp()


class Sorted(ProcessJoinFunction):
    """Equal times go aside, in both ways that there are."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        if left[1] == right[1]:
            yield EQUAL, f"{left[1]} yielded"
            ctx.output(EQUAL, f"{left[1]} sent")
        else:
            yield left[1], right[1]


def test_results_have_the_later_timestamp(env: StreamExecutionEnvironment) -> None:
    left = scripted(env, [[("k", 5), ("k", 20)]], "left").key_by(0)
    right = scripted(env, [[("k", 2), ("k", 20), ("k", 23)]], "right").key_by(0)

    main = left.interval_join(right).between(-3, 3).process(Sorted())
    timed = main.process(Timestamp())
    aside = main.get_side_output(EQUAL).map(lambda text: (text,)).process(Timestamp())

    assert sorted(timed.union(aside).execute_and_collect(), key=repr) == [
        ("20 sent", 20),
        ("20 yielded", 20),
        (20, 23, 23),
        (5, 2, 5),
    ]


def test_none_is_no_output(env: StreamExecutionEnvironment) -> None:
    class Silent(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            return None

    left = scripted(env, [[("k", 0)]], "left").key_by(0)
    right = scripted(env, [[("k", 0)]], "right").key_by(0)
    assert (
        list(left.interval_join(right).between(0, 0).process(Silent()).execute_and_collect()) == []
    )


class Names(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> list[Any]:
        return [(left[0], left[2], right[2])]


def drawn(seed: int, records: int, keys: int, out_of_order: int, epochs: int) -> Any:
    """Epochs of (key, time, name), out of order by at most so much, with equal times among them."""
    rng = random.Random(seed)
    found, now = [], 0
    for name in range(records):
        now += rng.choice([0, 0, 1, 7])
        found.append((f"k{rng.randrange(keys)}", now - rng.randint(0, out_of_order), name))
    size = -(-records // epochs)
    return [found[i : i + size] for i in range(0, records, size)]


def all_pairs(left: Any, right: Any, lower: int, upper: int) -> list[Any]:
    return sorted(
        (a[0], a[2], b[2])
        for a in chain.from_iterable(left)
        for b in chain.from_iterable(right)
        if a[0] == b[0] and a[1] + lower <= b[1] <= a[1] + upper
    )


@pytest.mark.parametrize(
    ("seed", "cache", "epochs"), [(1, "100000", 4), (2, "8", 6), (3, "1", 3), (4, "64", 1)]
)
def test_every_pair_once(make_env: Any, seed: int, cache: str, epochs: int) -> None:
    """Records out of order, and more of them than the cache holds."""
    env = make_env({"penstock.state.cache-entries": cache})
    scripts = [drawn(10 * seed + side, 200, 4, 20, epochs) for side in (0, 1)]
    left = scripted(env, scripts[0], "left", by_time(20)).key_by(0)
    right = scripted(env, scripts[1], "right", by_time(20)).key_by(0)

    pairs = left.interval_join(right).between(-30, 15).process(Names())

    expected = all_pairs(*scripts, -30, 15)
    assert len(expected) > 500
    assert sorted(pairs.execute_and_collect()) == expected


@pytest.mark.parametrize("epochs", [1, 5])
def test_in_event_time_order(make_env: Any, epochs: int) -> None:
    """A pair is found when its later record has its turn, so results come in order of time."""
    scripts = [drawn(side, 60, 1, 20, epochs) for side in (5, 6)]
    env = make_env({"parallelism.default": "1"})
    left = scripted(env, scripts[0], "left", by_time(20)).key_by(0).in_event_time_order()
    right = scripted(env, scripts[1], "right", by_time(20)).key_by(0)

    pairs = left.interval_join(right).between(-30, 15).process(Names()).process(Timestamp())

    found = list(pairs.execute_and_collect())
    assert sorted(pair[:3] for pair in found) == all_pairs(*scripts, -30, 15)
    assert [pair[3] for pair in found] == sorted(pair[3] for pair in found)


def test_buffers_outlive_failures(make_env: Any) -> None:
    scripts = [drawn(side, 80, 3, 10, 8) for side in (7, 8)]
    failing = [[list(epoch) for epoch in script] for script in scripts]
    failing[0][2].append(ScriptedSource.FAIL)
    failing[1][5].insert(3, ScriptedSource.FAIL)
    env = make_env(RESTARTS)
    left = scripted(env, failing[0], "left", by_time(10)).key_by(0)
    right = scripted(env, failing[1], "right", by_time(10)).key_by(0)

    pairs = left.interval_join(right).between(-40, 40).process(Names())

    assert sorted(pairs.execute_and_collect()) == all_pairs(*scripts, -40, 40)


@pytest.mark.parametrize(("before", "after"), [("2", "3"), ("3", "1")])
def test_other_parallelism(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    scripts = [drawn(side, 80, 9, 10, 8) for side in (9, 10)]

    def pairs(parallelism: str, fails: bool) -> Any:
        def check(record: Any) -> Any:
            if fails and record[2] >= 50:
                raise RuntimeError("half-way")
            return record

        env = restartable_env({"parallelism.default": parallelism})
        left = scripted(env, scripts[0], "left", by_time(10)).map(check).set_parallelism(1)
        right = scripted(env, scripts[1], "right", by_time(10)).key_by(0)
        return left.key_by(0).interval_join(right).between(-40, 40).process(Names()).uid("join")

    first, _ = collect_until_error(pairs(before, True))
    second = list(pairs(after, False).execute_and_collect())

    assert first
    assert second
    assert sorted(first + second) == all_pairs(*scripts, -40, 40)


def test_late_records(env: StreamExecutionEnvironment) -> None:
    """Late is what is behind the watermark; a record at the watermark still finds its partner."""
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    epochs = [[("k", 10)], [("k", 100)], [("k", 98), ("k", 99), ("k", 100)]]
    left = scripted(env, epochs, "left").key_by(0)
    right = scripted(env, epochs, "right").key_by(0)
    joined = left.interval_join(right).between(0, 0)

    dropping = joined.process(Pair()).uid("dropping")
    to_sides = joined.side_output_left_late_data(LATE_LEFT).side_output_right_late_data(LATE_RIGHT)
    main = to_sides.process(Pair()).uid("to sides")
    streams = dropping.map(lambda pair: ("dropping", *pair)).union(
        main.map(lambda pair: ("main", *pair)),
        main.get_side_output(LATE_LEFT).map(lambda late: ("late left", *late)),
        main.get_side_output(LATE_RIGHT).map(lambda late: ("late right", *late)),
    )

    # In the last epoch the watermark is at 99 from the beginning.
    pairs = [(10, 10), (99, 99), *[(100, 100)] * 4]
    assert sorted(streams.execute_and_collect(), key=repr) == sorted(
        [("dropping", *pair) for pair in pairs]
        + [("main", *pair) for pair in pairs]
        + [("late left", "k", 98), ("late right", "k", 98)],
        key=repr,
    )
    assert late_records(reports, "dropping") == 2
    assert late_records(reports, "to sides") == 0


@pytest.mark.parametrize(("lower", "upper"), [(-5, 5), (3, 10)])
def test_nothing_is_kept_behind_the_bound(
    restartable_env: Any, tmp_path: Path, lower: int, upper: int
) -> None:
    env = restartable_env()
    stored: list[int] = []
    checkpoints = str(tmp_path / "checkpoints")
    env.add_epoch_listener(lambda _: stored.append(stored_entries(checkpoints, "job")["join"]))
    script = [[(f"k{key}", time) for key in range(3)] for time in range(0, 120, 10)]
    left = scripted(env, script, "left").key_by(0)
    right = scripted(env, script, "right").key_by(0)

    pairs = left.interval_join(right).between(lower, upper).process(Pair()).uid("join")

    found = sorted(pairs.execute_and_collect())
    times = range(0, 120, 10)
    inside = [(a, b) for a in times for b in times if a + lower <= b <= a + upper]
    assert found == sorted(inside * 3)
    # Per key and side at most two times, and a timer for them.
    assert 0 < max(stored) <= 3 * 2 * 3
    assert stored[-1] == 0


def test_records_without_timestamps(env: StreamExecutionEnvironment) -> None:
    left = env.from_elements(("k", 1)).key_by(0)
    right = env.from_elements(("k", 1)).key_by(0)
    pairs = left.interval_join(right).between(0, 0).process(Pair()).name("join")
    with pytest.raises(InvalidArgumentError, match=r"'join'.*no timestamp.*assign_timestamps_and"):
        list(pairs.execute_and_collect())


def test_an_error_names_the_operator(env: StreamExecutionEnvironment) -> None:
    class Fails(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            raise LookupError("no such pair")

    left = scripted(env, [[("k", 0)]], "left").key_by(0)
    right = scripted(env, [[("k", 0)]], "right").key_by(0)
    pairs = left.interval_join(right).between(0, 0).process(Fails()).name("join").map(str)
    with pytest.raises(UserFunctionError, match=r"'join \(.*LookupError: no such pair"):
        list(pairs.filter(bool).execute_and_collect())
