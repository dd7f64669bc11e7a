"""Checkpoint directories that cannot be used: unwritable, damaged, too new, of another job."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointUnwritableError,
    LeaseHeldError,
    PenstockError,
    UserFunctionError,
)

RECORDS = 60


def counts(
    env: StreamExecutionEnvironment, limit: int = RECORDS, name: str = "count"
) -> DataStream:
    """Gives (key, number, how many so far); a number from `limit` on fails."""

    def record(n: int) -> tuple[int, int, int]:
        if n >= limit:
            raise ValueError("too large")
        return n % 3, n, 1

    keyed = env.from_collection(range(RECORDS)).uid("numbers").map(record).key_by(0)
    return keyed.reduce(lambda before, now: (before[0], now[1], before[2] + 1)).uid(name)


@pytest.fixture
def half_done(restartable_env: Any, tmp_path: Path) -> Path:
    """The job's directory after a run that failed half-way."""
    with pytest.raises(UserFunctionError, match="too large"):
        list(counts(restartable_env(), limit=35).execute_and_collect())
    return tmp_path / "checkpoints" / "job"


def fails(env: StreamExecutionEnvironment, kind: type[PenstockError], *parts: str) -> str:
    """Run the job, which must fail with one clear error that has these parts."""
    with pytest.raises(PenstockError) as caught:
        list(counts(env).execute_and_collect())
    text = str(caught.value)
    assert type(caught.value) is kind, text
    for part in parts:
        assert part in text
    assert "Traceback" not in text
    return text


def newest_manifest(root: Path) -> Path:
    return max((root / "epochs").glob("*.json"), key=lambda path: int(path.stem))


def test_unwritable(make_env: Any, tmp_path: Path) -> None:
    """Root may write anywhere, but not below a file."""
    file = tmp_path / "file"
    file.write_text("")

    env = make_env({"execution.checkpointing.dir": f"{file}/checkpoints"})

    fails(env, CheckpointUnwritableError, f"{file}/checkpoints", "check that the directory exists")
    assert file.read_text() == ""


def test_unsupported_scheme(make_env: Any) -> None:
    message = "s3:// is not supported for a checkpoint directory yet; use"
    with pytest.raises(PenstockError, match=message):
        counts(make_env({"execution.checkpointing.dir": "s3://bucket/x"})).execute_and_collect()


def test_garbled_manifest(restartable_env: Any, half_done: Path) -> None:
    manifest = newest_manifest(half_done)
    good = manifest.read_bytes()
    manifest.write_bytes(good[: len(good) // 2])

    fails(
        restartable_env(),
        CheckpointCorruptError,
        f"checkpoint file {manifest} is damaged",
        "start from an earlier checkpoint",
    )

    manifest.write_bytes(good)
    _assert_goes_on(restartable_env)


def _flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_flip_a_byte, os.unlink], ids=["flipped", "missing"])
def test_damaged_state(
    restartable_env: Any, half_done: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    # What was read into a local store is not read again: so the next run is on another host.
    other_host = {"state.backend.local-dir": str(tmp_path / "other stores")}
    manifest = json.loads(newest_manifest(half_done).read_text())
    files = [
        half_done / file["path"]
        for vertex in manifest["vertices"].values()
        for subtask in vertex["subtasks"]
        for link in subtask["chain"]
        for file in link["files"]
    ]
    kept = {file: file.read_bytes() for file in files}
    for file in files:
        damage(file)

    text = fails(restartable_env(other_host), CheckpointCorruptError, "start from an earlier")
    assert any(str(file) in text for file in files)

    for file, data in kept.items():
        file.write_bytes(data)
    _assert_goes_on(restartable_env, other_host)


def test_newer_format(restartable_env: Any, half_done: Path) -> None:
    manifest = newest_manifest(half_done)
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "format": 99, "new part": {}}))

    fails(
        restartable_env(),
        CheckpointFormatError,
        f"{manifest} has format version 99",
        "upgrade Penstock",
    )

    manifest.write_text(json.dumps(content))
    _assert_goes_on(restartable_env)


def test_of_another_job(restartable_env: Any, half_done: Path) -> None:
    """The directory was moved; or another program runs under the job's id."""
    moved = half_done.with_name("moved")
    half_done.rename(moved)
    fails(
        restartable_env({"penstock.job-id": "moved"}),
        CheckpointMismatchError,
        f"{moved} belongs to job 'job', not to 'moved'",
        "set another execution.checkpointing.dir or penstock.job-id",
    )
    moved.rename(half_done)

    with pytest.raises(CheckpointMismatchError, match="- count: state"):
        list(counts(restartable_env(), name="another").execute_and_collect())
    _assert_goes_on(restartable_env)


def test_in_use(restartable_env: Any, make_env: Any, half_done: Path) -> None:
    """Two drivers on one directory would undo each other's work."""
    from penstock.storage.lease import Lease

    with Lease.acquire(str(half_done), {"job": "the other"}):
        fails(restartable_env(), LeaseHeldError, "the other", "stop that job first")
    _assert_goes_on(restartable_env)


def _assert_goes_on(restartable_env: Any, settings: dict[str, str] | None = None) -> None:
    """30 records were committed by the first run."""
    rest = list(counts(restartable_env(settings)).execute_and_collect())
    assert sorted(n for _, n, _ in rest) == list(range(30, RECORDS))
    counts_of_rest = sorted((key, count) for key, _, count in rest)
    assert counts_of_rest == [(key, count) for key in range(3) for count in range(11, 21)]


class Remembers(KeyedProcessFunction):
    """Keeps something under a declared type, and fails at `fails_at`."""

    def __init__(self, kept: Any, declared: Any, fails_at: int) -> None:
        self._kept, self._declared, self._fails_at = kept, declared, fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("kept", self._declared))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        if value == self._fails_at:
            raise ValueError("too large")
        yield self._state.value()
        self._state.update(self._kept)


def test_state_of_another_type_is_refused_before_it_is_read(restartable_env: Any) -> None:
    def run(kept: Any, declared: Any, fails_at: int = -1) -> list[Any]:
        keyed = restartable_env().from_collection(range(40)).key_by(lambda n: n % 2)
        stream = keyed.process(Remembers(kept, declared, fails_at)).uid("remembers")
        return list(stream.execute_and_collect())

    with pytest.raises(UserFunctionError, match="too large"):
        run("x", Types.STRING(), fails_at=25)
    seen = []
    with pytest.raises(CheckpointMismatchError, match=r"state 'kept'.*use a new state name"):
        seen += run(1, Types.LONG())
    assert seen == []
    assert set(run("x", Types.STRING())) == {"x"}
