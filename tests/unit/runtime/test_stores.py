"""The stores of a worker: what is remembered between runs, and what a store may begin with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.runtime import stores
from penstock.runtime.physical import JobSettings
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest
from penstock.storage.rocksdb_store import RocksdbStore
from penstock.storage.store import open_store

fs = LocalFileSystem()


@pytest.fixture
def settings(tmp_path: Path) -> JobSettings:
    return JobSettings(
        job_id="job",
        job_name="Job",
        run_id="first",
        root=str(tmp_path / "job"),
        local_dir=str(tmp_path / "local"),
        state_backend="rocksdb",
        cache_entries=10,
        max_records_per_epoch=10,
        epoch_seconds=1.0,
        batch=False,
    )


def test_a_manifest_is_read_once_in_a_run_and_anew_in_the_next(settings):
    log = CheckpointLog(fs, CheckpointLayout(settings.root))
    log.commit(Manifest("job", "Old", 3, None, None, None, 0, {}))
    assert stores.base_manifest(settings, 3).job_name == "Old"
    fs.delete_tree(settings.root)
    assert stores.base_manifest(settings, 3).job_name == "Old"
    log.commit(Manifest("job", "New", 3, None, None, None, 0, {}))
    assert stores.base_manifest(replace(settings, run_id="second"), 3).job_name == "New"


def test_what_a_dead_writer_left_is_not_taken_for_state(settings):
    left = RocksdbStore(stores.local_store_path(settings, "v", 0), batch_bytes=100)

    def broken():
        yield from ((b"\0\0key%d" % n, b"x" * 50) for n in range(10))
        raise OSError("lost the file")

    with pytest.raises(OSError, match="lost"):
        left.apply(broken(), "1-a")
    assert left.version() is None
    assert next(left.scan(b""))
    left.close()
    store, caught_up = stores.store_at(settings, "v", 0, None, {"op"}, (0, 127))
    assert (store.version(), list(store.scan(b"")), caught_up.rows) == (None, [], 0)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_without_a_base_a_store_begins_empty(settings, backend):
    settings = replace(settings, state_backend=backend)
    before = open_store(backend, stores.local_store_path(settings, "v", 0))
    before.apply([(b"\0\0key", b"x")], "1-a")
    before.close()
    store, _ = stores.store_at(settings, "v", 0, None, {"op"}, (0, 127))
    assert (store.version(), list(store.scan(b""))) == (None, [])


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_stores_of_a_job_that_has_ended_are_removed(settings, backend):
    settings = replace(settings, state_backend=backend)
    other = replace(settings, root=settings.root + "-2")
    for job in (settings, other):
        store, _ = stores.store_at(job, "v", 0, None, {"op"}, (0, 127))
        store.apply([(b"\0\0key", b"x")], "1-a")
        stores.spill_store(job, "v", 0).apply([(b"\0\0key", b"x")], "spilled")
    stores.remove_stores(settings)
    assert len(fs.list(settings.local_dir)) == 1
    assert store.get(b"\0\0key") == b"x"
    # The next life of the job begins with none, in the same process too.
    again = stores._store(settings, stores.local_store_path(settings, "v", 0))
    assert (again.version(), list(again.scan(b""))) == (None, [])
    again.apply([(b"\0\0key", b"y")], "1-b")
    assert again.get(b"\0\0key") == b"y"


def test_a_job_without_stores_has_none_to_remove(settings):
    stores.remove_stores(settings)
