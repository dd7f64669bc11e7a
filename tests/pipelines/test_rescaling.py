"""Key groups: a job that goes on with another parallelism finds the state of every key."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.errors import CheckpointMismatchError

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


def _kept(env: StreamExecutionEnvironment, limit: int) -> DataStream:
    """State of some size under many keys; fails at the last round's end."""

    def pair(n: int) -> tuple[int, str, int]:
        if n >= limit:
            raise RuntimeError("half-way")
        return n % _MANY, "x" * 100, 1

    numbers = env.from_sequence(0, 4 * _MANY - 1).uid("numbers")
    return numbers.map(pair).key_by(0).sum(2).uid("counts")


_MANY = 20_000


def test_each_byte_of_the_state_is_read_about_once(
    restartable_env: Any, collect_until_error: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """2 → 5 → 1: subtasks read those parts of the files that hold their key groups."""
    settings = {"penstock.source.max-records-per-epoch": str(_MANY)}
    seen: list[tuple[str, int]] = []
    for parallelism, rounds in (("2", 2), ("5", 3), ("1", 4)):
        env = restartable_env({**settings, "parallelism.default": parallelism})
        reports: list[EpochReport] = []
        env.add_epoch_listener(reports.append)
        size = _state_bytes(tmp_path)
        found, _ = collect_until_error(_kept(env, rounds * _MANY - 1))
        read = sum(report.restored_bytes for report in reports)
        if size:
            assert 0.9 * size < read < 1.2 * size
            seen.append((parallelism, read))
    assert [parallelism for parallelism, _ in seen] == ["5", "1"]


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
