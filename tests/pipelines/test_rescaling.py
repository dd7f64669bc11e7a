"""Key groups: a job that goes on with another parallelism finds the state of every key."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.driver.epoch_report import EpochReport
from penstock.errors import CheckpointMismatchError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import filesystem_for
from penstock.testing import ScriptedSource

KEYS = 30


def _counts(env: StreamExecutionEnvironment, limit: int) -> DataStream:
    """Gives (key, how many so far)."""

    def pair(n: int) -> tuple[str, int]:
        if n >= limit:
            raise RuntimeError("half-way")
        return f"key {n % KEYS}", 1

    return env.from_sequence(0, 299).uid("numbers").map(pair).key_by(0).sum(1).uid("counts")


@pytest.mark.parametrize(("before", "after"), [("2", "3"), ("3", "1")])
def test_other_parallelism(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    settings = {"penstock.source.max-records-per-epoch": "25"}
    first_env = restartable_env({**settings, "parallelism.default": before})
    second_env = restartable_env({**settings, "parallelism.default": after})

    first, _ = collect_until_error(_counts(first_env, limit=280))
    second = list(_counts(second_env, limit=1000).execute_and_collect())

    assert len(first) >= 50
    assert second
    each = range(1, 300 // KEYS + 1)
    expected = sorted((f"key {key}", count) for key in range(KEYS) for count in each)
    assert sorted(first + second) == expected


class Remember(KeyedProcessFunction):
    """State of some size under many keys; gives how often a key was seen."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: tuple[int, int], ctx: Any) -> Any:
        if value[0] >= self.rounds:
            raise RuntimeError("on cue")
        count = (self.seen.value() or (0, b""))[0] + 1
        self.seen.update((count, random.Random(value[1]).randbytes(1000)))
        yield value[1], count


def test_each_byte_of_the_state_is_read_about_once(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    """2 → 5 → 1: subtasks read those parts of the files that hold their key groups."""
    keys, touched = range(20_000), range(0, 20_000, 100)
    script = [[(n, key) for key in (touched if n else keys)] for n in range(4)]
    for rounds, parallelism in enumerate((2, 5, 1), start=1):
        settings = {"penstock.source.max-records-per-epoch": "100000"}
        env = restartable_env({**settings, "parallelism.default": str(parallelism)})
        reports: list[EpochReport] = []
        env.add_epoch_listener(reports.append)
        size = _state_bytes(tmp_path)
        source = env.from_source(ScriptedSource(script), source_name="script").uid("script")
        stream = source.key_by(lambda v: v[1]).process(Remember(rounds)).uid("remember")

        found, _ = collect_until_error(stream)

        assert dict(found) == dict.fromkeys(touched if size else keys, rounds)
        assert 0.99 * size <= sum(report.restored_bytes for report in reports) <= 1.15 * size
    assert _state_bytes(tmp_path) > 20_000 * 1000


def _state_bytes(tmp_path: Path) -> int:
    """The files that the newest epoch names."""
    fs, root = filesystem_for(str(tmp_path / "checkpoints"))
    log = CheckpointLog(fs, CheckpointLayout.of_job(root, "job"))
    epochs = log.epochs()
    files = log.read(epochs[-1]).files() if epochs else []
    return sum({file.path: file.bytes for file in files}.values())


def test_max_parallelism_stays(restartable_env: Any, collect_until_error: Any) -> None:
    """It is the number of key groups, by which state is stored."""
    collect_until_error(_counts(restartable_env(), limit=280))
    env = restartable_env().set_max_parallelism(64)

    with pytest.raises(CheckpointMismatchError, match=r"set_max_parallelism\(128\)"):
        list(_counts(env, limit=1000).execute_and_collect())
