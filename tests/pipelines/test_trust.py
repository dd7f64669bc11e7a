"""Unpickling runs code: what others wrote is opened only if one asks for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gated import KEYS, GatedSource, await_true
from payloads import Payload
from trees import tree

from penstock.common import Types
from penstock.datastream import CheckpointedFunction, KeyedProcessFunction
from penstock.datastream.connectors.base import InitContext, ReadResult, SourceReader, Split
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.errors import CheckpointCorruptError, PenstockError, UntrustedSnapshotError
from penstock.storage import trust
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.sealing import seal
from penstock.storage.snapshot import open_snapshot

START = "execution.state-recovery.path"
TRUST = {"penstock.trust-pickle": "true"}
RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
PLACES = ("position", "split", "value", "key", "operator")

StartJob = Callable[..., Any]


class PayloadSource(GatedSource):
    """Numbers, with payloads as the split's data and as position, if these are wanted."""

    def __init__(self, gate: Path, marker: str, place: str) -> None:
        super().__init__(gate)
        self._marker, self._place = marker, place

    def create_splits(self, parallelism: int) -> list[Split]:
        extra = Payload(self._marker) if self._place == "split" else None
        start = Payload(self._marker) if self._place == "position" else 0
        return [Split("numbers", (self._gate, extra), start)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _PayloadReader()


class _PayloadReader(SourceReader):
    def read(self, split: Split, position: Any, max_records: int) -> ReadResult:
        at = position.number if isinstance(position, Payload) else position
        stop = int(Path(split.data[0]).read_text() or at)
        now = Payload(position.path, stop) if isinstance(position, Payload) else stop
        return ReadResult(list(range(at, stop)), now)


class Remembers(KeyedProcessFunction, CheckpointedFunction):
    """Counts, beside payloads in state."""

    def __init__(self, marker: str, place: str, out: str) -> None:
        self._marker, self._place, self._out = marker, place, out

    def open(self, context: Any) -> None:
        self._count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._value = context.get_state(ValueStateDescriptor("payload", Types.PICKLED_BYTE_ARRAY()))

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._list = store.get_list_state(
            ListStateDescriptor("payloads", Types.PICKLED_BYTE_ARRAY())
        )

    def snapshot_state(self, context: Any) -> None:
        if self._place == "operator":
            self._list.update([Payload(self._marker)])

    def process_element(self, value: Any, context: Any) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        if self._place == "key":
            context.timer_service().register_event_time_timer(value)
        if self._place == "value":
            self._value.value()
            self._value.update(Payload(self._marker))
        with open(self._out, "a") as file:
            file.write(f"{value} {count}\n")
        yield value


@pytest.fixture(scope="module")
def executor() -> str:
    return "local"


@pytest.fixture
def job(restartable_env: Any, tmp_path: Path) -> StartJob:
    """Starts a job that keeps payloads in one place, with the others empty."""

    def start(place: str, gate: int, settings: dict[str, str] | None = None) -> Any:
        (tmp_path / "gate").write_text(str(gate))
        env = restartable_env(
            {"execution.checkpointing.savepoint-dir": str(tmp_path / "sp"), **(settings or {})}
        )
        marker = str(tmp_path / "opened")

        def key(n: int) -> Any:
            return Payload(marker, n % KEYS) if place == "key" else n % KEYS

        source = PayloadSource(tmp_path / "gate", marker, place)
        numbers = env.from_source(source).uid("numbers").set_parallelism(1)
        keyed = numbers.key_by(key).process(Remembers(marker, place, str(tmp_path / "out")))
        keyed.uid("remembers").set_parallelism(1).print()
        return env.execute_async("payloads")

    return start


@pytest.fixture
def savepoint(job: StartJob, tmp_path: Path) -> Callable[[str], Path]:
    """One that holds payloads in a place, none of which has been opened since."""

    def make(place: str) -> Path:
        running = job(place, 10)
        await_counts(tmp_path, 10)
        path = Path(running.stop_with_savepoint(False).result(60))
        (tmp_path / "opened").unlink(missing_ok=True)
        return path

    return make


def await_counts(tmp_path: Path, count: int) -> None:
    lines = [f"{n} {n // KEYS + 1}" for n in range(count)]
    await_true(lambda: len(_lines(tmp_path)) >= count)
    assert _lines(tmp_path) == lines


def _lines(tmp_path: Path) -> list[str]:
    out = tmp_path / "out"
    return out.read_text().splitlines() if out.exists() else []


def refused(running: Any, path: Path, kind: type[PenstockError] = UntrustedSnapshotError) -> None:
    with pytest.raises(kind, match=str(path)):
        running.get_job_execution_result().result(60)


@pytest.mark.parametrize("place", PLACES)
def test_of_another_user(
    job: StartJob, savepoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    path = savepoint(place)
    before = tree(path)
    monkeypatch.setenv("PENSTOCK_STATE_DIR", str(tmp_path / "another user"))
    refused(job(place, 20, {START: str(path)}), path)
    assert not (tmp_path / "opened").exists()
    assert tree(path) == before

    running = job(place, 20, {START: str(path), **TRUST})
    await_counts(tmp_path, 20)
    running.stop_with_savepoint(True).result(60)  # timers fire, with their keys
    assert (tmp_path / "opened").exists()  # so the payload is one


def _unsigned(path: Path) -> None:
    (path / "signature.json").unlink()


def _garbled(path: Path) -> None:
    (path / "signature.json").write_text("[]")


def _sealed_by_another(path: Path) -> None:
    """Somebody has changed it, and made all digests fit."""
    manifest = open_snapshot(str(path)).manifest
    for name in ("savepoint.json", "signature.json"):
        (path / name).rename(path.with_name(name))
    (splits,) = path.glob("sources/*/splits")
    splits.write_bytes(splits.read_bytes() + b"more")
    seal(LocalFileSystem(), str(path), manifest, signed=False)
    path.with_name("signature.json").rename(path / "signature.json")


def _with_more(path: Path) -> None:
    (path / "state" / "more.parquet").write_text("")


@pytest.mark.parametrize("change", [_unsigned, _garbled, _sealed_by_another, _with_more])
def test_changed(
    job: StartJob, savepoint: Any, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = savepoint("value")
    change(path)
    refused(job("value", 20, {START: str(path)}), path)
    assert not trust.is_trusted(open_snapshot(str(path)))
    assert not (tmp_path / "opened").exists()
    running = job("value", 20, {START: str(path), **TRUST})
    await_counts(tmp_path, 20)
    running.cancel().result(60)
    # What is not in its list is not taken.
    assert not list((tmp_path / "checkpoints").rglob("more.parquet"))


def test_the_signature_of_another_savepoint(job: StartJob, savepoint: Any, tmp_path: Path) -> None:
    path = savepoint("value")
    running = job("value", 20, {START: str(path)})
    await_counts(tmp_path, 20)
    other = Path(running.stop_with_savepoint(False).result(60))
    (tmp_path / "opened").unlink()
    shutil.copy(other / "signature.json", path / "signature.json")
    refused(job("value", 30, {START: str(path)}), path)
    assert not (tmp_path / "opened").exists()


def test_a_file_is_exchanged_between_check_and_use(
    job: StartJob, savepoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signature is right when it is looked at; then somebody is quicker."""
    path = savepoint("split")
    (splits,) = path.glob("sources/*/splits")
    check = trust.check_author

    def exchanged(*arguments: Any) -> None:
        check(*arguments)
        splits.write_bytes(bytes(len(splits.read_bytes())))

    monkeypatch.setattr("penstock.driver.beginning.check_author", exchanged)
    refused(job("split", 20, {START: str(path)}), splits, CheckpointCorruptError)
    assert not (tmp_path / "opened").exists()


def test_what_others_may_write_is_not_shared_with_them(
    job: StartJob, savepoint: Any, tmp_path: Path
) -> None:
    """Else they could change it while the job runs, when all has been checked."""
    path = savepoint("value")
    one, *others = sorted(path.glob("state/*"))
    one.chmod(0o666)
    running = job("value", 20, {START: str(path)})
    await_counts(tmp_path, 20)
    taken = tmp_path / "checkpoints" / "job" / "state"
    assert not one.samefile(taken / one.name)
    assert all(other.samefile(taken / other.name) for other in others)
    running.cancel().result(60)


def test_own_ones_stay_trusted_wherever_they_are(
    job: StartJob, savepoint: Any, tmp_path: Path
) -> None:
    path = savepoint("value")
    copy = Path(shutil.copytree(path, tmp_path / "copies" / "of it"))
    moved = Path(shutil.move(path, tmp_path / "moved"))
    for place in (copy, moved):
        assert trust.is_trusted(open_snapshot(str(place)))
        anew = {START: str(place), "penstock.job-id": place.name.split()[0]}
        (tmp_path / "out").write_text("".join(f"{n} {n // KEYS + 1}\n" for n in range(10)))
        running = job("value", 20, anew)
        await_counts(tmp_path, 20)
        running.cancel().result(60)


# Checkpoints


@pytest.fixture
def checkpoint(job: StartJob, tmp_path: Path) -> Path:
    """The directory of a job that was cancelled."""
    running = job("position", 10, RETAIN)
    await_counts(tmp_path, 10)
    running.cancel().result(60)
    (tmp_path / "opened").unlink()
    return tmp_path / "checkpoints" / "job"


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Some paths belong to another user from now on, as far as we look; for real only root may."""
    given: set[Path] = set()
    owner = trust._owner
    monkeypatch.setattr(trust, "_owner", lambda p: 12345 if Path(p) in given else owner(p))
    return given.update


@pytest.mark.parametrize("part", ["", "epochs", "epochs/*", "sources", "sources/*/splits"])
def test_the_job_s_own_directory_belongs_to_another_user(
    job: StartJob, checkpoint: Path, tmp_path: Path, give_away: Any, part: str
) -> None:
    give_away(checkpoint.glob(part) if part else [checkpoint])
    with pytest.raises(UntrustedSnapshotError, match=r"another user \(uid 12345\)"):
        job("position", 20).get_job_execution_result().result(60)
    assert not (tmp_path / "opened").exists()
    running = job("position", 20, TRUST)
    await_counts(tmp_path, 20)
    running.cancel().result(60)


def test_splits_since_a_savepoint_belong_to_another_user(
    job: StartJob, savepoint: Any, tmp_path: Path, give_away: Any
) -> None:
    own = {"penstock.job-id": "own", **RETAIN}
    first = job("position", 20, {START: str(savepoint("position")), **own})
    await_counts(tmp_path, 20)
    first.cancel().result(60)
    splits = list((tmp_path / "checkpoints" / "own").glob("sources-*/*/splits"))
    assert splits
    give_away(splits)
    with pytest.raises(UntrustedSnapshotError, match=r"another user \(uid 12345\)"):
        job("position", 20, own).get_job_execution_result().result(60)


def test_files_go_while_a_running_job_s_checkpoint_is_looked_at(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = str(checkpoint / "gone")
    listed = trust._all_in
    monkeypatch.setattr(trust, "_all_in", lambda place: [*listed(place), gone])
    assert trust.is_trusted(open_snapshot(str(checkpoint)))


def test_tasks_may_run_as_another_user(
    job: StartJob, checkpoint: Path, tmp_path: Path, give_away: Any
) -> None:
    (splits,) = checkpoint.glob("sources/*/splits")
    rows = splits.with_name("rows") / "part"
    rows.parent.mkdir()
    rows.touch()
    give_away([*checkpoint.glob("state/*"), rows.parent, rows])
    running = job("position", 20)
    await_counts(tmp_path, 20)
    running.cancel().result(60)


@pytest.mark.parametrize("part", ["state/*", "epochs/*", "sources"])
def test_another_checkpoint_belongs_to_another_user(
    job: StartJob, checkpoint: Path, tmp_path: Path, give_away: Any, part: str
) -> None:
    give_away(checkpoint.glob(part))
    other = {"penstock.job-id": "other"}
    start = {START: str(checkpoint), **other}
    refused(job("position", 20, start), checkpoint)
    assert not (tmp_path / "opened").exists()
    running = job("position", 20, {**start, **TRUST})
    await_counts(tmp_path, 20)
    running.cancel().result(60)
