"""Requests for savepoints, without a job."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from penstock.driver import savepoints
from penstock.driver.savepoints import Savepoints
from penstock.errors import SavepointError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.manifest import Manifest

EPOCH = Manifest("job", "Job", 1, None, None, None, 0, {})


def requests_of(tmp_path: Path) -> Savepoints:
    return Savepoints("Job", "job", lambda: CheckpointLayout(str(tmp_path / "job")))


def test_asked_before_the_job_has_begun(tmp_path: Path) -> None:
    requests = requests_of(tmp_path)
    asked = requests.request(str(tmp_path))
    requests.begin(lambda: EPOCH, lambda paths: nullcontext())
    assert Path(asked.result(60)).parent == tmp_path
    requests.close("FINISHED")


def test_the_end_does_not_wait_for_an_epoch_that_never_comes(tmp_path: Path) -> None:
    """One was there when the work began, and then one whose output cannot be committed."""
    requests = requests_of(tmp_path)
    answers = iter([EPOCH, None])
    looked = threading.Event()

    def settled() -> Manifest | None:
        found = next(answers, None)
        if found is None:
            looked.set()
        return found

    requests.begin(settled, lambda paths: nullcontext())
    asked = requests.request(str(tmp_path))
    assert looked.wait(60)
    closing = threading.Thread(target=requests.close, args=("FAILED",))
    closing.start()
    with pytest.raises(SavepointError, match="FAILED"):
        asked.result(60)
    closing.join(60)
    assert not closing.is_alive()


def test_an_epoch_that_was_overtaken_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sources keep beside it is that of the next by then."""
    requests = requests_of(tmp_path)
    after = Manifest("job", "Job", 2, None, None, None, 0, {})
    answers = iter([EPOCH, after])
    requests.begin(lambda: next(answers, after), lambda paths: nullcontext())
    written: list[int] = []
    monkeypatch.setattr(
        savepoints, "write_savepoint", lambda *given: str(written.append(given[1].epoch))
    )
    requests.request(str(tmp_path)).result(60)
    requests.close("FINISHED")
    assert written == [2]


def test_rows_of_batch_frames_are_copied_when_they_are_all_there(tmp_path: Path) -> None:
    layout = CheckpointLayout(str(tmp_path / "job"))
    for vertex, names in {"whole": ["part", "_SUCCESS"], "half": ["_temporary"]}.items():
        for name in names:
            path = Path(layout.rows(vertex), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    made = savepoints.write_savepoint(layout, EPOCH, "job", str(tmp_path), {"whole": b"then"})
    found = {str(p.relative_to(made)) for p in Path(made, "sources").rglob("*") if p.is_file()}
    rows = "sources/whole/rows"
    assert found == {f"{rows}/part", f"{rows}/_SUCCESS", "sources/whole/splits"}
    assert Path(made, "sources/whole/splits").read_bytes() == b"then"
