from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import StoreLostError
from penstock.storage.rocksdb_store import RocksdbStore

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def rows(count: int, value: bytes) -> list[tuple[bytes, bytes | None]]:
    return [(b"%06d" % n, value) for n in range(count)]


def test_many_versions_do_not_pile_up_files(tmp_path):
    store = RocksdbStore(str(tmp_path))
    for version in range(40):
        keys = random.sample(range(5000), 200)
        store.apply([(b"%06d" % n, os.urandom(50)) for n in keys], str(version))
    assert len(list((tmp_path / "db").glob("*.sst"))) < 10
    assert store.version() == "39"
    store.close()


def test_a_reader_goes_on_after_its_files_were_compacted_away(tmp_path):
    reader, writer = RocksdbStore(str(tmp_path)), RocksdbStore(str(tmp_path))
    writer.apply(rows(1000, b"1"), "1")
    assert reader.version() == "1"
    scan = reader.scan(b"")
    first = next(scan)
    for version in range(2, 20):
        writer.apply(rows(1000, b"%d" % version), str(version))
    # It has the deleted files open.
    assert {value for _, value in [first, *scan]} == {b"1"}
    assert {reader.get(key) for key, _ in rows(1000, b"")} == {b"1"}
    assert reader.version() == "19"
    assert {value for _, value in reader.scan(b"")} == {b"19"}
    reader.close()
    writer.close()


def lose_a_file(tmp_path: Path) -> None:
    for file in (tmp_path / "db").glob("*.sst"):
        file.unlink()


def test_lost_files_are_noticed_and_the_store_is_empty_again(tmp_path):
    store = RocksdbStore(str(tmp_path))
    store.apply(rows(1000, b"1"), "1")
    store.close()
    lose_a_file(tmp_path)
    assert store.version() is None
    store.apply(rows(10, b"2"), "2")
    assert (store.version(), len(list(store.scan(b"")))) == ("2", 10)
    store.close()


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_a_damaged_store_is_emptied(tmp_path, name):
    store = RocksdbStore(str(tmp_path))
    store.apply(rows(1000, b"1"), "1")
    store.close()
    (file,) = (tmp_path / "db").glob(name + "*")
    file.write_bytes(b"garbage")
    assert store.version() is None
    store.apply(rows(10, b"2"), "2")
    assert (store.version(), len(list(store.scan(b"")))) == ("2", 10)
    store.close()


def damage_a_block(tmp_path: Path) -> None:
    for file in (tmp_path / "db").glob("*.sst"):
        with open(file, "r+b") as data:
            data.seek(file.stat().st_size // 3)
            data.write(b"\xff" * 64)


def get_all(store: RocksdbStore) -> None:
    for key, _ in rows(5000, b""):
        store.get(key)


def scan_all(store: RocksdbStore) -> None:
    list(store.scan(b""))


def apply_often(store: RocksdbStore) -> None:
    """Until a compaction reads the block."""
    for version in range(20):
        store.apply([(key, os.urandom(100)) for key, _ in rows(5000, b"")], f"{version}")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("use", [get_all, scan_all, apply_often])
def test_a_damaged_block_is_found_when_it_is_needed_and_the_store_removed(tmp_path, use):
    store, other = RocksdbStore(str(tmp_path)), RocksdbStore(str(tmp_path))
    store.apply([(key, os.urandom(100)) for key, _ in rows(5000, b"")], "1")
    store.close()
    damage_a_block(tmp_path)
    assert store.version() == other.version() == "1"
    with pytest.raises(StoreLostError, match=r"checksum mismatch.*tried again"):
        use(store)
    assert store.version() is None
    store.apply(rows(10, b"2"), "2")
    assert (store.version(), len(list(store.scan(b"")))) == ("2", 10)
    # Who had it open finds the other version, and leaves that alone.
    with pytest.raises(StoreLostError, match="from version 1 to 2"):
        get_all(other)
    assert other.version() == "2"
    store.close()
    other.close()


@pytest.mark.parametrize("use", [get_all, scan_all])
def test_a_lack_of_means_is_no_damage(tmp_path, monkeypatch, use):
    store = RocksdbStore(str(tmp_path))
    store.apply(rows(10, b"1"), "1")

    class Failing:
        def get(self, key: bytes) -> bytes:
            raise Exception("IO error: Too many open files")

        def iter(self, options: object) -> None:
            raise Exception("IO error: Too many open files")

        def close(self) -> None:
            pass

    opened = RocksdbStore._try_open_reader

    def fail(self: RocksdbStore) -> None:
        opened(self)
        self._reader = Failing()  # type: ignore[assignment]

    with monkeypatch.context() as patched:
        patched.setattr(RocksdbStore, "_try_open_reader", fail)
        with pytest.raises(StoreLostError, match="open files"):
            use(store)
    assert (store.version(), len(list(store.scan(b"")))) == ("1", 10)
    store.close()


def crash_in_apply(path: Path, batch_bytes: int) -> None:
    code = f"""
import os
from penstock.storage.rocksdb_store import RocksdbStore
def changes():
    yield from ((b"%06d" % n, b"new" * 100) for n in range(1000))
    os._exit(37)
RocksdbStore({str(path)!r}, batch_bytes={batch_bytes}).apply(changes(), "2")
"""
    assert subprocess.run([sys.executable, "-c", code], env=ENV, check=False).returncode == 37


@pytest.mark.parametrize("batch_bytes", [1 << 20, 10_000])
def test_a_writer_that_dies_leaves_the_old_version_or_none(tmp_path, batch_bytes):
    store = RocksdbStore(str(tmp_path))
    store.apply(rows(1000, b"1"), "1")
    crash_in_apply(tmp_path, batch_bytes)
    if store.version() is not None:
        assert store.version() == "1"
        assert {value for _, value in store.scan(b"")} == {b"1"}
    store.reset()
    store.apply(rows(5, b"3"), "3")
    assert (store.version(), len(list(store.scan(b"")))) == ("3", 5)
    store.close()


def test_an_apply_in_several_batches_ends_with_its_version(tmp_path):
    store = RocksdbStore(str(tmp_path), batch_bytes=1000)
    store.apply(rows(1000, b"x" * 50), "1")
    assert (store.version(), len(list(store.scan(b"")))) == ("1", 1000)
    store.close()


def test_a_broken_source_in_the_second_batch_leaves_no_version(tmp_path):
    store = RocksdbStore(str(tmp_path), batch_bytes=1000)
    store.apply(rows(10, b"1"), "1")

    def broken():
        yield from rows(1000, b"x" * 50)
        raise OSError("lost the file")

    with pytest.raises(OSError, match="lost"):
        store.apply(broken(), "2")
    assert store.version() is None
    store.close()
