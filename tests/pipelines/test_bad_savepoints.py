"""Savepoints that cannot be used or made: a clear error, and what was there stays as it was."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gated import (
    SAVEPOINTS,
    START,
    Count,
    StartJob,
    await_lines,
    await_true,
    counts,
    expected,
    written,
)
from trees import tree

from penstock.common import JobStatus
from penstock.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    CheckpointUnwritableError,
    InvalidArgumentError,
    LeaseHeldError,
    PenstockError,
    SavepointError,
    SinkCommitError,
    SnapshotNotFoundError,
)
from penstock.storage.manifest import FORMAT_VERSION

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"


@pytest.fixture(scope="module")
def executor() -> str:
    """Files are refused before an executor is chosen; see test_bad_savepoints_of_frames."""
    return "local"


@pytest.fixture
def savepoint(job: StartJob, tmp_path: Path) -> Path:
    """Of the first ten numbers; of the job itself nothing is left."""
    running = job(10)
    await_lines(tmp_path, 10)
    return Path(running.stop_with_savepoint(False).result())


def refused(running: Any, kind: type[PenstockError], *parts: str) -> str:
    """The job must end with one clear error that has these parts."""
    with pytest.raises(PenstockError) as caught:
        running.get_job_execution_result().result(60)
    text = str(caught.value)
    assert type(caught.value) is kind, text
    for part in parts:
        assert part in text
    return text


def left(tmp_path: Path) -> list[str]:
    """What is in the job's directory, but for the lock."""
    return sorted(set(tree(tmp_path / "checkpoints" / "job")) - {"lease.lock"})


def ends(running: Any) -> None:
    running.cancel().result(60)


# Damaged ones


def test_half_copied(job: StartJob, savepoint: Path, tmp_path: Path) -> None:
    """Whatever is missing, in whatever order a copy is made; the last file is no exception."""
    files = sorted(tree(savepoint))
    assert {Path(file).parts[0] for file in files} >= {"savepoint.json", "state", "sources"}
    whole = tree(savepoint)
    copy = tmp_path / "copy"
    for order in (files, files[::-1]):
        for count in range(len(order)):
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            for file in order[:count]:
                target = copy / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(savepoint / file, target)
            running = job(20, {START: str(copy)})
            with pytest.raises(PenstockError) as caught:
                running.get_job_execution_result().result(60)
            text = str(caught.value)
            missing = set(order[count:])
            if "savepoint.json" in missing:
                assert isinstance(caught.value, SnapshotNotFoundError), text
                assert str(copy) in text
            elif missing == {"signature.json"}:
                assert "allow that with --trust-pickle" in text
            else:
                assert isinstance(caught.value, CheckpointCorruptError), text
                assert any(
                    f"{copy}/{file} is damaged: the file is missing" in text for file in missing
                )
            assert left(tmp_path) == []
    assert tree(savepoint) == whole
    assert written(tmp_path / "out") == expected(range(10))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("trusting", ["false", "true"])
@pytest.mark.parametrize("damage", [_flip, _cut_off], ids=["flipped", "cut off"])
def test_damaged(
    job: StartJob, savepoint: Path, tmp_path: Path, damage: Callable[[Path], None], trusting: str
) -> None:
    for file in sorted(tree(savepoint)):
        copy = Path(shutil.copytree(savepoint, tmp_path / f"{file.replace('/', ' ')} damaged"))
        damage(copy / file)
        before = tree(copy)
        if file == "signature.json":
            continue  # what it protects is as it was; see test_trust
        running = job(20, {START: str(copy), "penstock.trust-pickle": trusting})
        refused(
            running, CheckpointCorruptError, f"{copy}/{file} is damaged", "start from an earlier"
        )
        assert tree(copy) == before
        assert left(tmp_path) == []
    ends(job(20, {START: str(savepoint)}))


def test_damaged_while_the_job_has_checkpoints_of_its_own(
    job: StartJob, savepoint: Path, tmp_path: Path
) -> None:
    """A second start from it, anew, must not spoil what the first has taken from it."""
    retained = {START: str(savepoint), RETENTION: "RETAIN_ON_CANCELLATION"}
    running = job(20, retained)
    await_lines(tmp_path, 20)
    ends(running)
    own = tree(tmp_path / "checkpoints" / "job" / "epochs") | tree(
        tmp_path / "checkpoints/job/state"
    )
    for file in savepoint.glob("state/*"):
        shutil.copy(file, tmp_path / "good")
        os.unlink(file)  # not the file that the job shares
        shutil.copy(tmp_path / "good", file)
        _flip(file)

    anew = {**retained, "penstock.state-recovery.anew": "true"}
    refused(job(20, anew), CheckpointCorruptError, f"{savepoint}/state/")
    now = tree(tmp_path / "checkpoints" / "job" / "epochs") | tree(
        tmp_path / "checkpoints/job/state"
    )
    assert now == own
    assert not list((tmp_path / "checkpoints" / "job").glob("*.tmp"))
    running = job(30, retained)
    await_lines(tmp_path, 30)
    ends(running)


def test_of_another_format(job: StartJob, savepoint: Path, tmp_path: Path) -> None:
    manifest = savepoint / "savepoint.json"
    good = manifest.read_text()
    for version, advice in ((99, "upgrade Penstock"), (FORMAT_VERSION - 1, "earlier Penstock")):
        manifest.write_text(json.dumps({**json.loads(good), "format": version, "new part": {}}))
        text = f"{manifest} has format version {version}"
        refused(job(20, {START: str(savepoint)}), CheckpointFormatError, text, advice)
    manifest.write_text(good)
    assert left(tmp_path) == []
    ends(job(20, {START: str(savepoint)}))


def test_a_savepoint_and_a_checkpoint_do_not_pass_for_each_other(
    job: StartJob, savepoint: Path, tmp_path: Path
) -> None:
    """They are trusted for different reasons."""
    as_checkpoint = Path(shutil.copytree(savepoint, tmp_path / "as checkpoint"))
    (as_checkpoint / "epochs").mkdir()
    (as_checkpoint / "savepoint.json").rename(as_checkpoint / "epochs" / "3.json")
    refused(job(20, {START: str(as_checkpoint)}), CheckpointCorruptError, "manifest of a savepoint")

    retained = {RETENTION: "RETAIN_ON_CANCELLATION", "penstock.job-id": "other"}
    running = job(10, retained, out="other")
    await_lines(tmp_path, 10, "other")
    ends(running)
    root = tmp_path / "checkpoints" / "other"
    newest = max((root / "epochs").glob("*.json"), key=lambda path: int(path.stem))
    newest.rename(root / "savepoint.json")
    refused(job(20, {START: str(root)}), CheckpointCorruptError, "not the manifest of a savepoint")
    assert left(tmp_path) == []


def test_links_lead_nowhere(job: StartJob, savepoint: Path, tmp_path: Path) -> None:
    for file in ("sources", next(savepoint.glob("state/*")).relative_to(savepoint)):
        copy = Path(shutil.copytree(savepoint, tmp_path / f"with a link {Path(file).name}"))
        outside = tmp_path / f"outside {Path(file).name}"
        (copy / file).rename(outside)
        (copy / file).symlink_to(outside)
        text = f"{copy / file} is damaged: it is a link"
        trusting = {START: str(copy), "penstock.trust-pickle": "true"}
        refused(job(20, trusting), CheckpointCorruptError, text)
    assert left(tmp_path) == []
    # But the way to the savepoint may be one.
    (tmp_path / "latest").symlink_to(savepoint)
    running = job(20, {START: str(tmp_path / "latest")})
    await_lines(tmp_path, 20)
    ends(running)


# Paths that lead to none


def test_no_savepoint_at_the_path(job: StartJob, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("a file")
    (tmp_path / "music" / "state").mkdir(parents=True)
    (tmp_path / "songs" / "epochs").mkdir(parents=True)
    (tmp_path / "songs" / "epochs" / "one.mp3").write_text("")
    (tmp_path / "odd" / "savepoint.json").mkdir(parents=True)
    (tmp_path / "odder").mkdir()
    (tmp_path / "odder" / "epochs").write_text("")
    for name, kind, part in (
        ("missing", SnapshotNotFoundError, "does not exist"),
        ("empty", SnapshotNotFoundError, "there is none in it"),
        ("file", SnapshotNotFoundError, "is no savepoint"),
        ("file/below", SnapshotNotFoundError, "is no savepoint"),
        ("music", SnapshotNotFoundError, "savepoint.json is missing"),
        ("songs", SnapshotNotFoundError, "is no savepoint"),
        ("odd", CheckpointCorruptError, "IsADirectoryError"),
        ("odder", SnapshotNotFoundError, "is no savepoint"),
    ):
        before = tree(tmp_path / name)
        refused(job(10, {START: str(tmp_path / name)}), kind, str(tmp_path / name), part)
        assert tree(tmp_path / name) == before
    refused(
        job(10, {START: "s3://bucket/x"}), InvalidArgumentError, "s3:// is not supported", "use"
    )
    refused(job(10, {START: ""}), InvalidArgumentError, "a path")
    assert left(tmp_path) == []
    assert written(tmp_path / "out") == []


# Two drivers


def test_a_second_driver_is_refused_also_if_it_starts_from_a_savepoint(
    job: StartJob, savepoint: Path, tmp_path: Path
) -> None:
    first = job(20, {START: str(savepoint)})
    await_lines(tmp_path, 20)
    for settings in (
        {},
        {START: str(savepoint)},
        {START: str(savepoint), "penstock.state-recovery.anew": "true"},
    ):
        refused(job(20, settings, out="second"), LeaseHeldError, "counting", "stop that job first")
    (tmp_path / "gate").write_text("30")
    await_lines(tmp_path, 30)
    assert written(tmp_path / "second") == []
    path = first.stop_with_savepoint(False).result(60)
    second = job(40, {START: path})
    await_lines(tmp_path, 40)
    ends(second)


# Savepoints that cannot be made


class _Full:
    """A disk with room for some more files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, below: Path, room: int) -> None:
        self.room = room
        replace_, link = os.replace, os.link

        def full(target: str) -> None:
            if str(target).startswith(str(below)):
                self.room -= 1
                if self.room < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

        def replacing(path: str, target: str) -> None:
            full(target)
            replace_(path, target)

        def linking(path: str, target: str) -> None:
            full(target)
            link(path, target)

        monkeypatch.setattr(os, "replace", replacing)
        monkeypatch.setattr(os, "link", linking)


def test_disk_full(job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whichever file of a savepoint; the job goes on, also if it was to stop."""
    running = job(10)
    await_lines(tmp_path, 10)
    whole = Path(running.trigger_savepoint().result(60))
    files = len(tree(whole))
    shutil.rmtree(whole)
    for room in range(files):
        for ask in (
            running.trigger_savepoint,
            lambda: running.stop_with_savepoint(False),
            running.cancel_with_savepoint,
        ):
            with monkeypatch.context() as patch:
                _Full(patch, tmp_path / "savepoints", room)
                with pytest.raises(CheckpointUnwritableError) as caught:
                    ask().result(60)
            assert f"{tmp_path}/savepoints/savepoint-job-" in str(caught.value)
            assert "has space" in str(caught.value)
            assert list((tmp_path / "savepoints").iterdir()) == []
    assert running.get_job_status().result() is JobStatus.RUNNING
    (tmp_path / "gate").write_text("20")
    await_lines(tmp_path, 20)
    path = running.stop_with_savepoint(False).result(60)
    running = job(30, {START: path})
    await_lines(tmp_path, 30)
    ends(running)


def test_disk_full_after_draining(
    job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is at the end of its time, and goes on as one would from the savepoint."""
    running = job(10)
    await_lines(tmp_path, 10)
    with monkeypatch.context() as patch:
        _Full(patch, tmp_path / "savepoints", 0)
        with pytest.raises(CheckpointUnwritableError):
            running.stop_with_savepoint(True).result(60)
    (tmp_path / "gate").write_text("20")
    await_lines(tmp_path, 20)
    path = running.stop_with_savepoint(True).result(60)
    running = job(30, {START: path})
    await_lines(tmp_path, 30)
    ends(running)


def test_disk_full_while_a_job_takes_a_savepoint_in(
    job: StartJob, savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(savepoint)
    root = tmp_path / "checkpoints" / "job"
    taken = len(before) - 2  # all but manifest and signature
    for room in range(taken):
        with monkeypatch.context() as patch:
            _Full(patch, root, room * 2)  # a link, and then its name
            refused(job(20, {START: str(savepoint)}), CheckpointUnwritableError, str(root), "space")
        assert left(tmp_path) == []
        assert tree(savepoint) == before
    running = job(20, {START: str(savepoint)})
    await_lines(tmp_path, 20)
    ends(running)


def test_directories_that_cannot_be_written_to(job: StartJob, tmp_path: Path) -> None:
    """Root may write anywhere, but not below a file."""
    (tmp_path / "file").write_text("")
    running = job(10)
    await_lines(tmp_path, 10)
    for directory, kind, part in (
        (
            f"{tmp_path}/file/savepoints",
            CheckpointUnwritableError,
            "check that the directory exists",
        ),
        ("s3://bucket/savepoints", InvalidArgumentError, "s3:// is not supported"),
        (f"{tmp_path}/checkpoints/job", SavepointError, "deleted with the job"),
        (f"{tmp_path}/checkpoints/job/mine", SavepointError, "deleted with the job"),
    ):
        for ask in (running.trigger_savepoint, running.cancel_with_savepoint):
            with pytest.raises(kind, match=part):
                ask(directory).result(60)
        with pytest.raises(kind, match=part):
            running.stop_with_savepoint(True, directory).result(60)
    # Beside the job it may lie.
    path = running.stop_with_savepoint(False, f"{tmp_path}/checkpoints").result(60)
    assert Path(path).parent == tmp_path / "checkpoints"
    running = job(20, {START: path})
    await_lines(tmp_path, 20)
    ends(running)
    assert Path(path).exists()


def test_of_a_job_in_batch_mode(restartable_env: Any, tmp_path: Path) -> None:
    (tmp_path / "gate").write_text("10")
    settings = {"execution.runtime-mode": "BATCH", SAVEPOINTS: str(tmp_path / "savepoints")}
    env = restartable_env(settings)
    counts(env, tmp_path / "gate", tmp_path / "out", end=10)
    running = env.execute_async("counting")
    for ask in (running.trigger_savepoint, running.cancel_with_savepoint):
        with pytest.raises(SavepointError, match=r"BATCH mode.*use STREAMING mode"):
            ask().result(60)
    running.get_job_execution_result().result(60)
    assert written(tmp_path / "out") == sorted(expected(range(10)))
    assert not (tmp_path / "savepoints").exists()


# Others that use the same files


def test_the_savepoint_of_a_running_job_is_deleted(
    job: StartJob, savepoint: Path, tmp_path: Path
) -> None:
    settings = {START: str(savepoint), "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.delay": "0 ms"}  # fmt: skip
    running = job(11, settings, FailsOnce(tmp_path / "failed", at=4))
    await_lines(tmp_path, 11)
    shutil.rmtree(savepoint)
    (tmp_path / "gate").write_text("30")
    await_lines(tmp_path, 30)
    assert (tmp_path / "failed").exists()
    ends(running)


class FailsOnce(Count):
    """Fails at a count of a key, the first time, until a file says that it may go on."""

    def __init__(self, marker: Path, at: int, gate: Path | None = None) -> None:
        self._marker, self._at, self._gate_of_failures = marker, at, gate

    def process_element(self, value: Any, context: Any) -> Any:
        for line in super().process_element(value, context):
            if line == f"0 {self._at}" and self._fails():
                raise ValueError("not yet")
            yield line

    def _fails(self) -> bool:
        if self._gate_of_failures is not None:
            self._marker.write_text("")
            return not self._gate_of_failures.exists()
        if self._marker.exists():
            return False
        self._marker.write_text("")
        return True


@pytest.mark.parametrize("stops", [False, True], ids=["triggered", "stopped"])
def test_a_savepoint_while_an_epoch_fails_again_and_again(
    job: StartJob, tmp_path: Path, stops: bool
) -> None:
    """It is of the last epoch that did not."""
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "restart-strategy.fixed-delay.attempts": "1000000",
    }
    failing = FailsOnce(tmp_path / "failed", at=4, gate=tmp_path / "go on")
    running = job(10, settings, failing)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_true((tmp_path / "failed").exists)
    if stops:
        path = running.stop_with_savepoint(False).result(60)
    else:
        path = running.trigger_savepoint().result(60)
        (tmp_path / "go on").write_text("")
        await_lines(tmp_path, 20)
        ends(running)
    shutil.rmtree(tmp_path / "out")
    second = job(20, {START: path, "penstock.job-id": "second"})
    rest = sorted(set(expected(range(20))) - set(expected(range(10))))
    await_true(lambda: written(tmp_path / "out") == rest)
    ends(second)


# Output that was prepared and not committed


@pytest.mark.parametrize("whose", ["job", "other"])
def test_a_checkpoint_whose_output_was_never_committed(
    job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Who starts from it commits it, as the job itself would."""
    with monkeypatch.context() as patch:
        patch.setattr("penstock.driver.committers.Committers.commit", _refuse)
        refused(job(10), SinkCommitError, "no room")
    assert written(tmp_path / "out") == []
    root = tmp_path / "checkpoints" / "job"
    before = tree(root)
    running = job(20, {START: str(root), "penstock.job-id": whose})
    await_lines(tmp_path, 20)
    ends(running)
    assert whose == "job" or tree(root) == before


def _refuse(self: object, prepared: dict[str, Any]) -> None:
    if prepared:
        raise SinkCommitError.of("files", 0, OSError("no room"))


def test_a_checkpoint_of_a_running_job(job: StartJob, tmp_path: Path) -> None:
    """It commits its output itself, and is not disturbed."""
    first = job(10, out="first")
    await_lines(tmp_path, 10, "first")
    root = str(tmp_path / "checkpoints" / "job")
    second = job(10, {START: root, "penstock.job-id": "other"})
    # Not before it has begun from there: the first one's next epoch would have the rest.
    await_true(lambda: any((tmp_path / "checkpoints" / "other" / "epochs").glob("*.json")))
    (tmp_path / "gate").write_text("20")
    rest = sorted(set(expected(range(20))) - set(expected(range(10))))
    await_true(lambda: written(tmp_path / "out") == rest)
    await_lines(tmp_path, 20, "first")
    ends(second)
    ends(first)


def test_the_job_s_own_directory_by_another_name(job: StartJob, tmp_path: Path) -> None:
    """An earlier epoch of its own is taken from where it is, and stays."""
    retained = {RETENTION: "RETAIN_ON_CANCELLATION", "execution.checkpointing.num-retained": "99"}
    running = job(10, retained)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_lines(tmp_path, 20)
    ends(running)
    (tmp_path / "link").symlink_to(tmp_path / "checkpoints" / "job")
    root = tmp_path / "checkpoints" / "job"
    before = tree(root / "state") | tree(root / "epochs")
    epochs = sorted((root / "epochs").glob("*.json"), key=lambda path: int(path.stem))
    of_ten = next(
        path for path in epochs if sum(f["rows"] for f in _files(json.loads(path.read_text()))) == 5
    )
    shutil.rmtree(tmp_path / "out")
    running = job(20, {**retained, START: f"{tmp_path}/link/epochs/{of_ten.name}"})
    rest = sorted(set(expected(range(20))) - set(expected(range(10))))
    await_true(lambda: written(tmp_path / "out") == rest)
    ends(running)
    now = tree(root / "state") | tree(root / "epochs")
    assert before.items() <= now.items()


def _files(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        file
        for vertex in manifest["vertices"].values()
        for subtask in vertex["subtasks"]
        for link in subtask["chain"]
        for file in link["files"]
    ]


def test_a_checkpoint_without_its_splits(job: StartJob, tmp_path: Path) -> None:
    running = job(10, {RETENTION: "RETAIN_ON_CANCELLATION"})
    await_lines(tmp_path, 10)
    ends(running)
    root = tmp_path / "checkpoints" / "job"
    (splits,) = root.glob("sources/*/splits")
    kept = splits.rename(tmp_path / "splits")
    other = {START: str(root), "penstock.job-id": "other"}
    refused(job(20, other), CheckpointCorruptError, f"{splits} is damaged: the file is missing")
    assert set(tree(tmp_path / "checkpoints" / "other")) == {"lease.lock"}
    refused(job(20), CheckpointCorruptError, f"{splits} is damaged: the file is missing")
    kept.rename(splits)
    running = job(20)
    await_lines(tmp_path, 20)
    ends(running)
