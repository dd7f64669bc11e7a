"""CheckpointListener: functions hear what became of their checkpoints."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
)
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.driver.local_executor import LocalExecutor
from penstock.errors import UserFunctionError
from penstock.runtime import tasks
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.testing import ScriptedSource

local = pytest.mark.parametrize("executor", ["local"], indirect=True)
on_spark = pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)
FAIL = ScriptedSource.FAIL
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}


class Log:
    """Events of functions in whatever process, in the order of time."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def write(self, *event: Any) -> None:
        line = json.dumps(event) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def read(self) -> list[Any]:
        return [json.loads(line) for line in Path(self.path).read_text().splitlines()]


class Watched(CheckpointListener, CheckpointedFunction):
    """Logs (subtask, instance, what, checkpoint)."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._here = -1
        self._name = ""

    def initialize_state(self, context: Any) -> None:
        self._name = secrets.token_hex(4)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._here = runtime_context.get_index_of_this_subtask()

    def snapshot_state(self, context: Any) -> None:
        self.log("snapshot", context.get_checkpoint_id())

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.log("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.log("aborted", checkpoint_id)

    def close(self) -> None:
        self.log("closed", None)

    def log(self, what: str, checkpoint: int | None) -> None:
        self._log.write(self._here, self._name, what, checkpoint)


class WatchedMap(Watched, MapFunction):
    def map(self, value: Any) -> Any:
        return value


def told(events: list[Any], what: str, subtask: int = 0) -> list[int]:
    return [at for where, _, kind, at in events if (where, kind) == (subtask, what)]


# Output that is staged in state and made visible when its checkpoint is complete


class StagingSink(SinkFunction, CheckpointedFunction, CheckpointListener):
    """A file for each subtask and epoch, written once the epoch cannot be undone."""

    def __init__(self, directory: Path, manifests: CheckpointLayout) -> None:
        self._directory = directory
        self._manifests = manifests
        self._records: list[Any] = []

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._state = store.get_list_state(ListStateDescriptor("staged"))
        self._staged = list(self._state.get())

    def open(self, runtime_context: RuntimeContext) -> None:
        self._here = runtime_context.get_index_of_this_subtask()

    def invoke(self, value: Any, context: Any) -> None:
        self._records.append(value)

    def snapshot_state(self, context: Any) -> None:
        self._staged.append((context.get_checkpoint_id(), self._records))
        self._records = []
        self._state.update(self._staged)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        assert Path(self._manifests.manifest(checkpoint_id)).exists()
        for at, records in self._staged:
            assert at <= checkpoint_id
            (self._directory / f"{self._here}-{at}").write_text(json.dumps(records))
        self._staged = []


@pytest.fixture
def staging(tmp_path: Path) -> Any:
    """A sink, and what it has written so far."""
    directory = tmp_path / "written"
    directory.mkdir()
    layout = CheckpointLayout.of_job(str(tmp_path / "checkpoints"), "job")

    def found() -> list[Any]:
        return [v for path in sorted(directory.iterdir()) for v in json.loads(path.read_text())]

    return StagingSink(directory, layout), found


def test_what_is_staged_is_written_once_and_all_of_it(restartable_env: Any, staging: Any) -> None:
    sink, written = staging
    env = restartable_env(RESTARTS)
    script = [[1, 2, 3], [4, FAIL, 5, 6], [7, 8]]
    source = env.from_source(ScriptedSource(script)).set_parallelism(1)
    source.rebalance().add_sink(sink)
    env.execute()
    assert sorted(written()) == list(range(1, 9))


@local
def test_what_the_last_epoch_gives_is_written_too(restartable_env: Any, staging: Any) -> None:
    """In batch mode all results come in it, and nothing follows."""
    sink, written = staging
    env = restartable_env()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_collection(list(range(10)))
    numbers.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).add_sink(sink)
    env.execute()
    assert sorted(written()) == [20, 25]


# Who is told what


@local
def test_each_epoch_is_told_to_the_instance_that_made_it(make_env: Any, tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    stream = make_env().from_source(ScriptedSource([[1], [2], [3]])).map(WatchedMap(log))
    assert list(stream.execute_and_collect()) == [1, 2, 3]

    for subtask in (0, 1):
        events = [(kind, at) for where, _, kind, at in log.read() if where == subtask]
        last = len(events) // 2 - 1
        assert last >= 2
        expected = [e for n in range(last + 1) for e in (("snapshot", n), ("complete", n))]
        assert events == [*expected, ("closed", None)]
    assert len({name for _, name, _, _ in log.read()}) == 2


class WatchedFlatMap(Watched, FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        yield value


@local
@pytest.mark.parametrize("apart", [False, True])
def test_a_failed_epoch_is_told(make_env: Any, tmp_path: Path, apart: bool) -> None:
    """In the task that failed, and in one that had done its part."""
    log = Log(tmp_path / "log")
    env = make_env({**RESTARTS, "parallelism.default": "1"})
    source = env.from_source(ScriptedSource([[1], [2, FAIL], [3]]))
    stream = (source.rebalance() if apart else source).flat_map(WatchedFlatMap(log))
    assert list(stream.execute_and_collect()) == [1, 2, 3]

    events = log.read()
    first = events[0][1]
    assert [(kind, at) for _, name, kind, at in events if name == first] == [
        ("snapshot", 0),
        ("complete", 0),
        *([("snapshot", 1)] if apart else []),
        ("aborted", 1),
        ("closed", None),
    ]
    second = [(kind, at) for _, name, kind, at in events if name != first]
    assert second[:3] == [("complete", 0), ("snapshot", 1), ("complete", 1)]
    assert second[-1] == ("closed", None)
    assert told(events, "aborted") == [1]


class RefusesOnce(WatchedMap):
    """Raises at one checkpoint, the first time."""

    def __init__(self, log: Log, at: int) -> None:
        super().__init__(log)
        self._at = at

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        before = told(self._log.read(), "complete") if os.path.exists(self._log.path) else []
        super().notify_checkpoint_complete(checkpoint_id)
        if checkpoint_id == self._at and checkpoint_id not in before:
            raise RuntimeError("not now")


def _epochs(make_env: Any, tmp_path: Path) -> int:
    """The number of the last one."""
    log = Log(tmp_path / "count")
    env = make_env({"parallelism.default": "1"})
    list(env.from_source(ScriptedSource([[1], [2]])).map(WatchedMap(log)).execute_and_collect())
    return max(told(log.read(), "complete"))


@local
def test_an_error_fails_the_job_and_is_told_again(make_env: Any, tmp_path: Path) -> None:
    """After any epoch, the last one too. It is the next epoch that is aborted by it."""
    last = _epochs(make_env, tmp_path)
    for at in range(last + 1):
        log = Log(tmp_path / f"log{at}")
        env = make_env({**RESTARTS, "parallelism.default": "1"})
        refuses = RefusesOnce(log, at)
        stream = env.from_source(ScriptedSource([[1], [2]])).map(refuses)
        assert list(stream.execute_and_collect()) == [1, 2]
        assert told(log.read(), "complete").count(at) == 2
        assert told(log.read(), "aborted") == ([at + 1] if at < last else [])


@local
def test_an_error_names_the_operator(make_env: Any, tmp_path: Path) -> None:
    env = make_env({"parallelism.default": "1"})
    refuses = RefusesOnce(Log(tmp_path / "log"), 0)
    stream = env.from_source(ScriptedSource([[1], [2]])).map(refuses).name("refuses")
    with pytest.raises(UserFunctionError, match=r"'refuses .*' failed .*RuntimeError: not now"):
        list(stream.execute_and_collect())


@local
def test_a_job_started_again_is_told_where_it_goes_on(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    log = Log(tmp_path / "log")

    def program(limit: int) -> Any:
        def check(value: int) -> int:
            if value >= limit:
                raise RuntimeError("half-way")
            return value

        env = restartable_env({"parallelism.default": "1"})
        return env.from_sequence(0, 49).uid("n").map(check).uid("c").map(WatchedMap(log)).uid("w")

    collect_until_error(program(25))
    before = log.read()
    assert told(before, "complete") == [0, 1]
    assert told(before, "aborted") == [2]
    list(program(100).execute_and_collect())
    after = log.read()[len(before) :]
    assert told(after, "complete")[0] == 1
    assert told(after, "complete")[1:] == told(after, "snapshot")


@local
def test_the_last_epoch_is_told_by_the_next_start_if_need_be(
    restartable_env: Any, tmp_path: Path
) -> None:
    """The job has ended, and those who are to be told could not be."""
    log = Log(tmp_path / "log")

    def program(at: int) -> Any:
        env = restartable_env({"parallelism.default": "1"})
        source = env.from_source(ScriptedSource([[1], [2]])).uid("n")
        return source.map(RefusesOnce(log, at)).uid("w")

    last = _epochs(restartable_env, tmp_path)
    Path(log.path).touch()
    shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
    with pytest.raises(UserFunctionError, match="not now"):
        list(program(at=last).execute_and_collect())
    before = log.read()
    assert list(program(at=last).execute_and_collect()) == []
    assert [(kind, at) for _, _, kind, at in log.read()[len(before) :]] == [
        ("complete", last),
        ("closed", None),
    ]


@local
def test_functions_that_do_not_listen_are_closed_with_the_last_epoch(
    make_env: Any, tmp_path: Path
) -> None:
    """Beside one that does; and each instance is closed once."""
    log = Log(tmp_path / "log")
    env = make_env({"parallelism.default": "1"})

    class Plain(MapFunction):
        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            log.write(0, "plain", "closed", None)

    stream = env.from_source(ScriptedSource([[1]])).map(WatchedMap(log)).rebalance().map(Plain())
    list(stream.execute_and_collect())
    kinds = [(name == "plain", kind) for _, name, kind, _ in log.read()]
    assert kinds.count((True, "closed")) == kinds.count((False, "closed")) == 1
    assert kinds.index((True, "closed")) < len(kinds) - 2
    assert kinds[-2:] == [(False, "complete"), (False, "closed")]


@local
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_the_instance_behind_a_source_hears_of_the_last_epoch(
    make_env: Any, tmp_path: Path, mode: str
) -> None:
    log = Log(tmp_path / "log")
    env = make_env({"parallelism.default": "1", "execution.runtime-mode": mode})
    list(env.from_source(ScriptedSource([[1], [2]])).map(WatchedMap(log)).execute_and_collect())
    events = log.read()
    assert len({name for _, name, _, _ in events}) == 1
    assert told(events, "complete") == told(events, "snapshot")


@local
def test_the_instance_in_the_head_of_a_loop_hears_of_the_last_epoch(
    make_env: Any, tmp_path: Path
) -> None:
    """It, and no new one that is made for that."""
    log = Log(tmp_path / "log")
    env = make_env({"parallelism.default": "1"})
    loop = env.from_elements(2).iterate()
    body = loop.map(WatchedMap(log)).map(lambda n: n - 1)
    loop.close_with(body.filter(lambda n: n > 0))
    assert list(body.filter(lambda n: n == 0).execute_and_collect()) == [0]
    events = log.read()
    assert len({name for _, name, _, _ in events}) == 1
    assert told(events, "complete") == told(events, "snapshot")
    assert events[-1][2] == "closed"


@local
def test_instances_that_another_process_is_asked_for(
    make_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end, subtask 0 comes to a process that has the instance of subtask 1, and one whose
    last attempt was not accepted."""
    log = Log(tmp_path / "log")
    say_farewell = LocalExecutor.say_farewell

    def from_elsewhere(self: LocalExecutor, loop: Any) -> None:
        mine = [item for item in tasks._idle.items() if item[0][0] == self._plan.settings.run_id]
        ((key, (task, since)),) = [item for item in mine if item[0][3] == 0]
        task.version = "another"
        del tasks._idle[key]
        tasks._idle[(key[0], -1, *key[2:])] = (task, since)
        say_farewell(self, loop)

    monkeypatch.setattr(LocalExecutor, "say_farewell", from_elsewhere)
    stream = make_env().from_source(ScriptedSource([[1], [2]])).map(WatchedMap(log))
    assert list(stream.execute_and_collect()) == [1, 2]

    events = log.read()
    last = max(told(events, "complete"))
    first = {where: name for where, name, _, _ in reversed(events)}
    ends = {
        name: [(kind, at) for _, n, kind, at in events if n == name][-2:]
        for name in {name for _, name, _, _ in events}
    }
    assert ends.pop(first[0]) == [("snapshot", last), ("closed", None)]
    assert ends.pop(first[1]) == [("complete", last), ("closed", None)]
    assert list(ends.values()) == [[("complete", last), ("closed", None)]] * 2
    assert not [key for key in tasks._idle if key[1] == -1]


class AcknowledgingReader(SourceReader, CheckpointListener):
    """Tells the outside how far it may forget, as a reader of a queue would."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._read = 0

    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        self._read = position + 1
        return ReadResult([position], position + 1, position == 2, paused=True)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._log.write(0, "reader", "complete", self._read)


class Queue(Source):
    boundedness = Boundedness.BOUNDED

    def __init__(self, log: Log) -> None:
        self._log = log

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("only", None, 0)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return AcknowledgingReader(self._log)


@local
def test_a_source_reader_may_listen(make_env: Any, tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    env = make_env({"parallelism.default": "1"})
    assert list(env.from_source(Queue(log)).execute_and_collect()) == [0, 1, 2]
    assert told(log.read(), "complete") == [1, 2, 3, 3]


@pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)
def test_behind_a_source_of_sparks(make_env: Any, spark: Any, tmp_path: Path) -> None:
    """Which takes no part in the last epoch; it is told of it all the same."""
    log = Log(tmp_path / "log")
    env = make_env()
    frame = spark.range(0, 10, 1, 2)
    found = list(env.from_spark(frame).map(WatchedMap(log)).execute_and_collect())
    assert len(found) == 10
    last = max(told(log.read(), "complete"))
    assert told(log.read(), "complete", 0)[-1] == told(log.read(), "complete", 1)[-1] == last
    assert last > max(told(log.read(), "snapshot"))

    log = Log(tmp_path / "log of the batch")
    env = make_env({"execution.runtime-mode": "BATCH"})
    assert len(list(env.from_spark(frame).map(WatchedMap(log)).execute_and_collect())) == 10
    assert {told(log.read(), "complete", subtask)[-1] for subtask in (0, 1)} == {0}
