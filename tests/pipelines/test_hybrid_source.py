"""HybridSource: one source after the other, in one stream. Nothing ends between two of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, ProcessFunction, RuntimeExecutionMode
from penstock.datastream.connectors.base import Boundedness, Source
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CheckpointMismatchError, UserFunctionError
from penstock.testing import ScriptedSource

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)

FAIL = ScriptedSource.FAIL
MAX = (1 << 63) - 1
# Periodic watermarks at the ends of epochs only: when else depends on how fast the machine is.
AT_ENDS = {"pipeline.auto-watermark-interval": "1 h"}

STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1]
)


def in_turn(first: Source, *others: Source) -> HybridSource:
    builder = HybridSource.builder(first)
    for source in others:
        builder = builder.add_source(source)
    return builder.build()


def failing_at(bad: Any) -> Any:
    def check(value: Any) -> Any:
        if value == bad:
            raise RuntimeError("half-way")
        return value

    return check


def lines_of(path: Path, every: int | None = None) -> FileSource:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    if every is not None:
        builder = builder.monitor_continuously(Duration.of_millis(every))
    return builder.build()


# Order


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_files_in_the_order_of_time_before_another_source(
    make_env: Any, tmp_path: Path, parallelism: str
) -> None:
    """None of their records is late, though a later strategy knows no files: they are of all
    sizes, and each is read after those before it."""
    sizes = [2, 30, 1, 40, 3, 20]
    for number, lines in enumerate(sizes):
        times = range(number * 100, number * 100 + lines)
        (tmp_path / f"{number}").write_text("".join(f"{time}\n" for time in times))
    lines_in = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    live = ScriptedSource({"x": [["1000"], ["1001"]], "y": [["1000"]]})
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda line, _: int(line)
    )
    settings = {"penstock.source.max-records-per-epoch": "10", "parallelism.default": parallelism}
    env = make_env(settings)
    stream = env.from_source(in_turn(lines_in.in_time_order().build(), live))
    found = stream.assign_timestamps_and_watermarks(strategy).process(Lateness())
    assert list(found.execute_and_collect()) == [False] * (sum(sizes) + 3)


class Lateness(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark() >= ctx.timestamp()


def test_each_to_its_end_before_the_next(make_env: Any, tmp_path: Path) -> None:
    """Sources of all kinds, with fewer and more splits than there are subtasks, in many epochs."""
    (tmp_path / "lines").write_text("201\n202\n")
    source = in_turn(
        NumberSequenceSource(1, 25),
        CollectionSource([101]),
        lines_of(tmp_path / "lines"),
        ScriptedSource({"a": [[301], [], [302]], "b": [[303]], "c": [[304]]}),
        DataGeneratorSource(lambda i: 400 + i, 3),
    )
    assert source.boundedness is Boundedness.BOUNDED
    env = make_env({"penstock.source.max-records-per-epoch": "10"})
    found = list(env.from_source(source, source_name="all").map(int).execute_and_collect())
    by_source = [sorted(v for v in found if v // 100 == n) for n in range(5)]
    assert by_source == [
        [*range(1, 26)],
        [101],
        [201, 202],
        [301, 302, 303, 304],
        [400, 401, 402],
    ]
    assert [v // 100 for v in found] == sorted(v // 100 for v in found)


@locally
@pytest.mark.parametrize(
    "sources",
    [
        [CollectionSource([]), CollectionSource([1, 2])],
        [CollectionSource([1]), CollectionSource([]), CollectionSource([]), CollectionSource([2])],
        [CollectionSource([1, 2]), CollectionSource([])],
        [in_turn(CollectionSource([1]), CollectionSource([])), CollectionSource([2])],
        [CollectionSource([1]), in_turn(CollectionSource([]), CollectionSource([2]))],
    ],
)
def test_sources_without_records(make_env: Any, sources: list[Source]) -> None:
    stream = make_env({"parallelism.default": "1"}).from_source(in_turn(*sources))
    assert list(stream.execute_and_collect()) == [1, 2]


@locally
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_in_batch_mode(make_env: Any, parallelism: str) -> None:
    """In one epoch; a subtask still reads one after the other."""
    env = make_env({"parallelism.default": parallelism})
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = in_turn(
        NumberSequenceSource(1, 25_000), CollectionSource([]), DataGeneratorSource(lambda i: -i, 2)
    )
    stream = env.from_source(source, type_info=Types.INT())
    found = list(stream.map(lambda v: v, Types.INT()).execute_and_collect())
    assert sorted(found) == sorted([*range(1, 25_001), 0, -1])
    if parallelism == "1":
        assert found[-2:] == [0, -1]
    last = stream.key_by(lambda v: 0).reduce(lambda a, b: a + b)
    assert list(last.execute_and_collect()) == [sum(range(1, 25_001)) - 1]


# Event time


class Shown(ProcessFunction):
    """Each record with the watermark that it met."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[0], ctx.timer_service().current_watermark()


class Watch(KeyedProcessFunction):
    """Tells the record that came before its timer rang, and where time was then."""

    def __init__(self) -> None:
        self.last: Any = None

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.last = value[0]
        ctx.timer_service().register_event_time_timer(1000)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.last, ctx.timer_service().current_watermark()


def test_event_time_goes_on_from_one_to_the_next(make_env: Any) -> None:
    """A timer behind all records rings behind those of the last source, at the end of time."""
    source = in_turn(
        ScriptedSource({"a": [[("a", 10)], [("a", 30)]], "b": [[("b", 20)]]}),
        CollectionSource([]),
        ScriptedSource([[("c", 40)], [("d", 50)]]),
    )
    stream = make_env(AT_ENDS).from_source(source, STRATEGY, "all")
    rung = stream.key_by(lambda r: "all").process(Watch())
    assert list(rung.execute_and_collect()) == [("d", MAX)]


def shown(env: Any, source: Source) -> dict[Any, int]:
    stream = env.from_source(source, STRATEGY, "all").global_().process(Shown())
    return dict(stream.execute_and_collect())


@locally
def test_time_stays_where_the_slowest_was_until_the_next_source_moves_it(make_env: Any) -> None:
    """Subtasks that come to their ends in the same epoch: the furthest must not decide."""
    source = in_turn(
        ScriptedSource(
            {"slow": [[("s1", 10)], [("s2", 20)]], "fast": [[("f1", 90)], [("f2", 99)]]}
        ),
        ScriptedSource({"x": [[("x1", 25)], [("x2", 40)]], "y": [[("y1", 30)], [("y2", 50)]]}),
    )
    met = shown(make_env(AT_ENDS), source)
    assert (met["s2"], met["f2"]) == (9, 9)
    assert (met["x1"], met["y1"]) == (19, 19)
    assert (met["x2"], met["y2"]) == (24, 24)


@locally
def test_a_subtask_without_splits_holds_nobody_back(make_env: Any) -> None:
    source = in_turn(
        ScriptedSource([[("a", 10)], [("b", 20)], [("c", 30)]]),
        ScriptedSource([[("d", 40)], [("e", 50)], [("f", 60)]]),
    )
    met = shown(make_env({"parallelism.default": "3", **AT_ENDS}), source)
    assert met["b"] == 9
    assert met["c"] == 19
    assert met["d"] == 29
    assert met["f"] == 49


@locally
def test_the_end_of_time_is_told_beside_a_longer_source(make_env: Any) -> None:
    hybrid = in_turn(ScriptedSource([[("a", 10)]]), ScriptedSource([[("b", 20)]]))
    env = make_env(AT_ENDS)
    ending = env.from_source(hybrid, STRATEGY, "ending")
    longer = env.from_source(ScriptedSource([[("x", t)] for t in range(0, 100, 10)]), STRATEGY, "x")
    met = ending.union(longer).global_().process(Shown()).execute_and_collect()
    by_x = [watermark for name, watermark in met if name == "x"]
    # Held at what the hybrid has reached, in its second epoch at 9; free when it has ended.
    assert by_x[2] <= 19
    assert by_x[5:] == [39, 49, 59, 69, 79]


@locally
def test_time_is_the_same_after_a_restart_at_the_turn(make_env: Any) -> None:
    def source(cue: list[Any]) -> HybridSource:
        return in_turn(
            ScriptedSource({"a": [[("a1", 10)], [("a2", 20)]], "b": [[("b1", 90)], [("b2", 99)]]}),
            ScriptedSource([[*cue, ("c", 25)], [("d", 40)], [*cue, ("e", 50)]]),
        )

    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "2",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **AT_ENDS,
    }
    assert shown(make_env(settings), source([FAIL])) == shown(make_env(settings), source([]))


# Restarts


def records(env: Any, bad: int) -> Any:
    source = in_turn(
        NumberSequenceSource(1, 30),
        CollectionSource(range(100, 130)),
        DataGeneratorSource(lambda i: 200 + i, 30),
    )
    return env.from_source(source).map(failing_at(bad))


ALL = [*range(1, 31), *range(100, 130), *range(200, 230)]


@pytest.mark.parametrize("bad", [15, 100, 115, 130, 200, 229, 112])
def test_exactly_once_over_restarts(
    restartable_env: Any, collect_until_error: Any, bad: int
) -> None:
    """In the middle of a source, at its first record, at the last one; with other parallelism."""
    before: list[int] = []
    if bad in ALL:
        before, _ = collect_until_error(records(restartable_env(), bad))
        assert 0 < len(before) < len(ALL)
    more = {"parallelism.default": "3"}
    after = list(records(restartable_env(more), -1).execute_and_collect())
    assert sorted(before + after) == ALL
    assert [v // 100 for v in before + after] == sorted(v // 100 for v in ALL)


@locally
def test_a_source_is_cut_for_the_parallelism_of_its_turn(
    restartable_env: Any, collect_until_error: Any
) -> None:
    """And goes on with those cuts; of a sequence other ones would be refused."""

    def stream(env: Any, bad: int) -> Any:
        source = in_turn(NumberSequenceSource(1, 30), NumberSequenceSource(101, 160))
        return env.from_source(source).map(failing_at(bad))

    found: list[int] = []
    for parallelism, bad in (("1", 25), ("3", 115), ("2", 155)):
        env = restartable_env({"parallelism.default": parallelism})
        found += collect_until_error(stream(env, bad))[0]
    found += stream(restartable_env(), -1).execute_and_collect()
    assert sorted(found) == [*range(1, 31), *range(101, 161)]


@locally
def test_what_was_read_need_not_be_there_any_more(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    history.write_text("".join(f"{n}\n" for n in range(15)))

    def stream(env: Any, bad: int) -> Any:
        source = in_turn(lines_of(history), CollectionSource(range(100, 140)))
        return env.from_source(source).map(int).map(failing_at(bad))

    before, _ = collect_until_error(stream(restartable_env(), 130))
    os.remove(history)
    after = list(stream(restartable_env(), -1).execute_and_collect())
    assert sorted(before + after) == [*range(15), *range(100, 140)]


@locally
def test_other_sources_than_before(restartable_env: Any, collect_until_error: Any) -> None:
    one, two = NumberSequenceSource(1, 10), NumberSequenceSource(101, 160)

    def run(source: Source, bad: int = -1) -> Any:
        return restartable_env().from_source(source).map(failing_at(bad))

    before, _ = collect_until_error(run(in_turn(one, two), 155))
    for changed, message in [
        (in_turn(one), "HybridSource of 1 sources .* keep all sources up to the one"),
        (in_turn(one, NumberSequenceSource(101, 170)), "sequence from 101 to 170 .* keep the bou"),
        (two, "- PythonSource-HybridSource-.*: positions"),
    ]:
        with pytest.raises(CheckpointMismatchError, match=message):
            list(run(changed).execute_and_collect())
    after = list(run(in_turn(one, two, CollectionSource([1000]))).execute_and_collect())
    assert sorted(before + after) == [*range(1, 11), *range(101, 161), 1000]


# A last source that never ends


def test_a_watched_folder_at_last(make_env: Any, tmp_path: Path) -> None:
    """It is empty when its turn comes."""
    folder = tmp_path / "in"
    folder.mkdir()
    source = in_turn(CollectionSource(["a", "b"]), lines_of(folder, every=20))
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    env = make_env({"penstock.epoch.interval": "10 ms"})
    found = []
    with env.from_source(source).execute_and_collect() as results:
        for line in results:
            found.append(line)
            if len(found) in (2, 4):
                hidden = folder / f".{len(found)}"
                hidden.write_text(f"{len(found)}\nx\n")
                hidden.rename(folder / str(len(found)))
            if len(found) == 6:
                break
    assert sorted(found[:2]) == ["a", "b"]
    assert found[2:] == ["2", "x", "4", "x"]


# Errors


class Broken(CollectionSource):
    def create_splits(self, parallelism: int) -> Any:
        raise OSError("no such cluster")


@locally
def test_a_source_that_fails_when_its_turn_comes(make_env: Any, collect_until_error: Any) -> None:
    source = in_turn(CollectionSource([1, 2]), Broken([]))
    found, error = collect_until_error(make_env().from_source(source, source_name="both"))
    assert sorted(found) == [1, 2]
    assert isinstance(error, UserFunctionError)
    assert error.original_type == "OSError"
    assert "operator 'Source: both (" in str(error)
