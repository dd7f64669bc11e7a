from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.storage.lmdb_store import LmdbStore

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def filled(path: Path, **options) -> LmdbStore:
    store = LmdbStore(str(path), **options)
    store.apply([(b"%06d" % n, b"v" * 100) for n in range(2000)], "1")
    return store


def test_the_map_grows_when_full(tmp_path):
    store = LmdbStore(str(tmp_path), map_size=1 << 18)
    changes = [(b"%06d" % n, b"v" * 500) for n in range(4000)]
    store.apply(changes, "1")
    assert (store.version(), len(list(store.scan(b"")))) == ("1", 4000)
    store.close()


def test_an_iterator_cannot_be_read_twice_but_the_map_has_grown(tmp_path):
    store = LmdbStore(str(tmp_path), map_size=1 << 18)
    with pytest.raises(StateError, match="try again"):
        store.apply(((b"%06d" % n, b"v" * 500) for n in range(1000)), "1")
    assert store.version() is None
    store.apply(((b"%06d" % n, b"v" * 50) for n in range(4000)), "1")
    assert store.version() == "1"
    store.close()


def test_a_map_grown_by_another_process_is_followed(tmp_path):
    store = LmdbStore(str(tmp_path), map_size=1 << 18)
    store.apply([(b"a", b"1")], "1")
    code = f"""
from penstock.storage.lmdb_store import LmdbStore
s = LmdbStore({str(tmp_path)!r}, map_size=1 << 26)
s.apply([(b"%06d" % n, b"v" * 500) for n in range(9000)], "2")
"""
    subprocess.run([sys.executable, "-c", code], env=ENV, check=True)
    assert store.version() == "2"
    assert len(list(store.scan(b""))) == 9001
    store.apply([(b"a", None)], "3")
    assert store.version() == "3"
    store.close()


def test_growing_ends_the_reads_of_other_stores_in_the_process(tmp_path):
    reader = LmdbStore(str(tmp_path), map_size=1 << 18)
    writer = LmdbStore(str(tmp_path), map_size=1 << 18)
    writer.apply([(b"a", b"1")], "1")
    assert reader.get(b"a") == b"1"
    writer.apply([(b"%06d" % n, b"v" * 500) for n in range(4000)], "2")
    with pytest.raises(StateError, match="tried again"):
        reader.get(b"a")
    assert (reader.version(), reader.get(b"a")) == ("2", b"1")
    reader.close()
    writer.close()


@pytest.mark.parametrize("damage", ["zeros", "garbage", "truncated", "empty"])
def test_a_damaged_file_is_deleted_and_made_anew(tmp_path, damage):
    filled(tmp_path).close()
    data = tmp_path / "data.mdb"
    whole = data.read_bytes()
    page = 4096
    data.write_bytes(
        {
            "zeros": bytes(len(whole)),
            "garbage": b"garbage" * (len(whole) // 7),
            "truncated": whole[: len(whole) // 2 // page * page],
            "empty": b"",
        }[damage]
    )
    store = LmdbStore(str(tmp_path))
    assert store.version() is None
    store.apply([(b"a", b"1")], "2")
    assert (store.version(), list(store.scan(b""))) == ("2", [(b"a", b"1")])
    store.close()


def test_what_was_written_before_a_reboot_is_not_trusted(tmp_path):
    filled(tmp_path).close()
    (tmp_path / "boot-id").write_text("another boot")
    store = LmdbStore(str(tmp_path))
    assert (store.version(), list(store.scan(b""))) == (None, [])
    store.apply([(b"a", b"1")], "2")
    store.close()
    again = LmdbStore(str(tmp_path))
    assert again.version() == "2"
    again.close()


def test_a_deleted_store_is_noticed(tmp_path):
    store = filled(tmp_path)
    for name in ("data.mdb", "lock.mdb"):
        (tmp_path / name).unlink()
    assert store.version() is None
    store.apply([(b"a", b"1")], "2")
    other = LmdbStore(str(tmp_path))
    assert other.version() == "2"
    store.close()
    other.close()


def test_a_writer_that_dies_before_its_commit_leaves_the_old_version(tmp_path):
    filled(tmp_path).close()
    code = f"""
import os
from penstock.storage.lmdb_store import LmdbStore
def changes():
    yield from ((b"%06d" % n, b"new") for n in range(2000))
    os._exit(37)
LmdbStore({str(tmp_path)!r}).apply(changes(), "2")
"""
    assert subprocess.run([sys.executable, "-c", code], env=ENV, check=False).returncode == 37
    store = LmdbStore(str(tmp_path))
    assert store.version() == "1"
    assert {value for _, value in store.scan(b"")} == {b"v" * 100}
    store.apply([(b"a", b"1")], "2")
    assert store.version() == "2"
    store.close()


def test_use_after_a_fork_says_so(tmp_path):
    store = filled(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            LmdbStore(str(tmp_path))
        except StateError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.version() == "1"
    store.close()


def test_a_child_may_open_what_the_parent_closed(tmp_path):
    filled(tmp_path).close()
    child = os.fork()
    if child == 0:
        store = LmdbStore(str(tmp_path))
        store.apply([(b"a", b"1")], "2")
        os._exit(0 if store.version() == "2" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store = LmdbStore(str(tmp_path))
    assert store.version() == "2"
    store.close()
