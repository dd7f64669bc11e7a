"""Savepoints and checkpoints as the command line shows and deletes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.driver import registry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import ChainLink, Manifest, SubtaskState, VertexState
from penstock.storage.sealing import seal

CONTENT = b"not really Parquet"
FILE = FileInfo("state/a.parquet", 1, len(CONTENT), "0", "image", (), (0, 127))


def _manifest(epoch: int, savepoint: bool) -> Manifest:
    subtask = SubtaskState("t", (ChainLink("v", (FILE,)),))
    return Manifest(
        job_id="alerts",
        job_name="Alerts",
        epoch=epoch,
        base=None,
        batch=None,
        offsets=None,
        created=1_700_000_000_000 + epoch,
        vertices={"counts": VertexState(("counts", "out"), 1, 128, (subtask,))},
        state_types={"counts": {"count": {"kind": "value"}}},
        savepoint=savepoint,
    )


def _with_state(place: Path) -> Path:
    (place / "state").mkdir(parents=True)
    (place / "state" / "a.parquet").write_bytes(CONTENT)
    return place


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    place = _with_state(tmp_path / "savepoints" / "one")
    seal(LocalFileSystem(), str(place), _manifest(7, True))
    return place


@pytest.fixture
def job_root(tmp_path: Path) -> Path:
    root = _with_state(tmp_path / "checkpoints" / "alerts")
    (root / "epochs").mkdir()
    for epoch in (3, 4):
        (root / "epochs" / f"{epoch}.json").write_bytes(_manifest(epoch, False).to_bytes())
    return root


def test_list(savepoint: Path, told: Any, said: Any) -> None:
    (found,) = told("savepoint", "list", str(savepoint.parent))["savepoints"]
    assert found == {
        "path": str(savepoint),
        "problem": None,
        "job_id": "alerts",
        "name": "Alerts",
        "epoch": 7,
        "created": "2023-11-14T22:13:20.007Z",
        "final": False,
        "files": 1,
        "bytes": len(CONTENT),
    }
    assert told("savepoint", "list", str(savepoint))["savepoints"] == [found]
    line = said("savepoint", "list", str(savepoint.parent)).splitlines()[1]
    assert line.split()[:2] == ["Alerts", "7"]
    assert line.endswith(str(savepoint))


def test_those_that_are_not_whole_are_listed_as_such(savepoint: Path, told: Any) -> None:
    _with_state(savepoint.parent / "half")
    damaged = _with_state(savepoint.parent / "damaged")
    (damaged / "savepoint.json").write_text("{")
    (savepoint.parent / "other" / "state").mkdir(parents=True)
    newer = _with_state(savepoint.parent / "newer")
    (newer / "savepoint.json").write_text('{"format": 99}')
    found = told("savepoint", "list", str(savepoint.parent))["savepoints"]
    assert {Path(one["path"]).name: one["problem"] for one in found} == {
        "half": "incomplete",
        "damaged": "damaged",
        "newer": "other format",
        "one": None,
    }


def test_without_a_directory_those_of_known_jobs(savepoint: Path, told: Any, entry: Any) -> None:
    assert told("savepoint", "list") == {"savepoints": []}
    registry.leave(entry("aa", savepoint_dir=str(savepoint.parent)), "FINISHED")
    registry.leave(entry("bb", savepoint_dir="/nowhere"), "FINISHED")
    assert [one["epoch"] for one in told("savepoint", "list")["savepoints"]] == [7]


def test_show(savepoint: Path, told: Any, said: Any) -> None:
    shown = told("savepoint", "show", str(savepoint))
    assert (shown["kind"], shown["problem"], shown["epoch"]) == ("savepoint", None, 7)
    assert shown["operators"] == [
        {"uid": "counts", "parallelism": 1, "max_parallelism": 128, "states": ["count"]},
        {"uid": "out", "parallelism": 1, "max_parallelism": 128, "states": []},
    ]
    assert "Job     Alerts (job id alerts)\n" in said("savepoint", "show", str(savepoint))


def test_show_one_that_is_not_whole(savepoint: Path, told: Any) -> None:
    (savepoint / "state" / "a.parquet").unlink()
    assert "is missing" in told("savepoint", "show", str(savepoint), code=5)["problem"]


def test_no_such_savepoint(tmp_path: Path, told: Any) -> None:
    error = told("savepoint", "show", str(tmp_path / "none"), code=3)["error"]
    assert error["type"] == "SnapshotNotFoundError"
    assert told("savepoint", "list", str(tmp_path / "none"), code=3)["error"]["code"] == 3


def test_checkpoints(job_root: Path, told: Any, entry: Any) -> None:
    """By directory, by the directory above, by the job."""
    found = told("checkpoints", str(job_root))["checkpoints"]
    assert [(one["epoch"], one["path"]) for one in found] == [
        (3, str(job_root / "epochs" / "3.json")),
        (4, str(job_root / "epochs" / "4.json")),
    ]
    assert told("checkpoints", str(job_root.parent))["checkpoints"] == found
    assert told("checkpoints") == {"checkpoints": []}
    registry.enter(entry(root=str(job_root)))
    assert told("checkpoints", "alerts")["checkpoints"] == found
    assert told("checkpoints")["checkpoints"] == found
    # Each is what `savepoint show`, and so `run -s`, takes.
    assert told("savepoint", "show", found[0]["path"])["epoch"] == 3


def test_dispose(savepoint: Path, told: Any) -> None:
    other = savepoint.parent / "other"
    other.mkdir()
    assert told("savepoint", "dispose", str(savepoint), "--yes") == {"disposed": str(savepoint)}
    assert not savepoint.exists()
    assert other.exists()


def test_dispose_asks(savepoint: Path, said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "give --yes" in said("savepoint", "dispose", str(savepoint), code=2)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert said("savepoint", "dispose", str(savepoint)) == "Nothing was deleted.\n"
    assert savepoint.exists()
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert said("savepoint", "dispose", str(savepoint)) == f"deleted {savepoint}\n"
    assert not savepoint.exists()


def test_what_is_no_savepoint_is_not_deleted(job_root: Path, tmp_path: Path, told: Any) -> None:
    for path, code in (
        (job_root, 4),
        (job_root / "epochs" / "3.json", 4),
        (tmp_path, 3),
        (_with_state(tmp_path / "half"), 3),
    ):
        assert told("savepoint", "dispose", str(path), "--yes", code=code)["error"]["code"] == code
    assert sorted(path.name for path in (job_root / "epochs").iterdir()) == ["3.json", "4.json"]
    assert (tmp_path / "half" / "state").exists()


def test_half_deleted_is_no_savepoint(
    savepoint: Path, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies while it deletes files."""

    def die(path: str, *_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", die)
    assert main(["savepoint", "dispose", str(savepoint), "--yes"]) == 130
    assert told("savepoint", "show", str(savepoint), code=3)["error"]["code"] == 3
    assert (savepoint / "state" / "a.parquet").exists()
