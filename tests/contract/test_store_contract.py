"""What every store does, checked against a dict: in memory, LMDB and RocksDB."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.errors import StateError
from penstock.storage.entries import key_prefix, pack_key, state_id, state_prefix
from penstock.storage.lmdb_store import LmdbStore
from penstock.storage.memory_store import MemoryStore
from penstock.storage.rocksdb_store import RocksdbStore
from penstock.storage.store import Store, open_store

COUNT = state_id("op", "count")
SEEN = state_id("op", "seen")

Opener = Callable[[str], Store]
OPENERS: dict[str, Opener] = {
    "memory": lambda path: MemoryStore(),
    "lmdb": LmdbStore,
    "rocksdb": lambda path: RocksdbStore(path, batch_bytes=50_000),
}
PERSISTENT = ["lmdb", "rocksdb"]


@pytest.fixture(params=OPENERS)
def store(request: pytest.FixtureRequest, tmp_path: Path):
    opened = OPENERS[request.param](str(tmp_path / "store"))
    yield opened
    opened.close()


def key(number: int, group: int = 0, state: bytes = COUNT) -> bytes:
    return pack_key(group, state, b"key%d" % number)


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.version() is None
    assert store.get(key(1)) is None
    assert list(store.scan(b"")) == []
    assert store.states() == {}


def test_apply_names_what_it_leads_to(store: Store) -> None:
    store.apply([(key(1), b"a"), (key(2), b""), (key(3), b"c")], "1-x")
    store.apply([(key(1), b"A"), (key(3), None), (key(9), None)], "2-y")
    assert store.version() == "2-y"
    assert [store.get(key(n)) for n in (1, 2, 3, 9)] == [b"A", b"", None, None]


def test_the_later_of_two_changes_wins(store: Store) -> None:
    store.apply([(key(1), b"a"), (key(1), None), (key(2), None), (key(2), b"b")], "1")
    assert [store.get(key(n)) for n in (1, 2)] == [None, b"b"]


def test_scans_are_ordered_and_see_no_records_of_the_store(store: Store) -> None:
    store.register_states({COUNT: ("op", "count"), SEEN: ("op", "seen")})
    entries = {key(n, group, state): b"v" for n in range(5) for group in (0, 1, 32767)
               for state in (COUNT, SEEN)}  # fmt: skip
    store.apply(entries.items(), "1")
    assert list(store.scan(b"")) == sorted(entries.items())
    wanted = state_prefix(32767, SEEN)
    assert [k for k, _ in store.scan(wanted)] == [k for k in sorted(entries) if k[:10] == wanted]
    assert store.states() == {COUNT: ("op", "count"), SEEN: ("op", "seen")}


def test_a_map_is_a_prefix_scan(store: Store) -> None:
    one, other = b"k", b"k2"
    entries = [(pack_key(3, SEEN, k, b"ns", b"%03d" % i), k) for k in (one, other)
               for i in range(200)]  # fmt: skip
    store.apply(entries, "1")
    prefix = key_prefix(3, SEEN, one, b"ns")
    assert [k[len(prefix) :] for k, _ in store.scan(prefix)] == [b"%03d" % i for i in range(200)]


@pytest.mark.parametrize("length", [470, 480, 481, 600, 5000])
def test_long_keys(store: Store, length: int) -> None:
    long = b"x" * length
    entries = {pack_key(1, SEEN, long, b"", b"m%d" % i): b"v%d" % i for i in range(30)}
    entries[pack_key(1, SEEN, long)] = b"bare"
    entries[pack_key(1, SEEN, b"short")] = b"s"
    store.apply(entries.items(), "1")
    assert [store.get(k) for k in entries] == list(entries.values())
    assert store.get(pack_key(1, SEEN, long, b"", b"absent")) is None
    prefix = key_prefix(1, SEEN, long, b"")
    assert list(store.scan(prefix)) == sorted(kv for kv in entries.items() if kv[1] != b"s")
    assert list(store.scan(prefix + b"m2")) == sorted(
        kv for kv in entries.items() if kv[0].startswith(prefix + b"m2")
    )
    store.apply([(k, None) for k in entries], "2")
    assert list(store.scan(b"")) == []


def test_big_values(store: Store) -> None:
    big = os.urandom(3_000_000)
    store.apply([(key(1), big), (key(2), b"s")], "1")
    assert store.get(key(1)) == big
    store.apply([(key(1), None)], "2")
    assert list(store.scan(b"")) == [(key(2), b"s")]


def test_reset_empties(store: Store) -> None:
    store.register_states({COUNT: ("op", "count")})
    store.apply([(key(1), b"a")], "1")
    store.reset()
    assert (store.version(), store.get(key(1)), list(store.scan(b""))) == (None, None, [])
    store.apply([(key(2), b"b")], "2")
    assert (store.version(), list(store.scan(b""))) == ("2", [(key(2), b"b")])


def test_changes_that_cannot_be_read_change_nothing(store: Store) -> None:
    store.apply([(key(1), b"a")], "1")

    def broken():
        yield key(1), b"b"
        raise OSError("lost the file")

    with pytest.raises(OSError, match="lost the file"):
        store.apply(broken(), "2")
    assert (store.version(), store.get(key(1))) == ("1", b"a")


def test_writing_ends_a_running_scan(store: Store) -> None:
    store.apply([(key(n), b"a") for n in range(9)], "1")
    scan = store.scan(b"")
    next(scan)
    store.apply([(key(1), b"b")], "2")
    with pytest.raises(StateError):
        list(scan)


def test_two_names_with_one_id_are_refused(store: Store) -> None:
    store.register_states({COUNT: ("op", "count")})
    with pytest.raises(StateError, match="same 64-bit id"):
        store.register_states({COUNT: ("op", "other")})


def test_exclusive_may_be_nested(store: Store) -> None:
    with store.exclusive(), store.exclusive():
        store.apply([(key(1), b"a")], "1")
    assert store.version() == "1"


@pytest.mark.parametrize("kind", PERSISTENT)
def test_reopening_finds_all(kind: str, tmp_path: Path) -> None:
    first = OPENERS[kind](str(tmp_path))
    first.register_states({COUNT: ("op", "count")})
    first.apply([(key(n), b"%d" % n) for n in range(100)], "7-abc")
    first.close()
    second = OPENERS[kind](str(tmp_path))
    assert second.version() == "7-abc"
    assert second.get(key(42)) == b"42"
    assert second.states() == {COUNT: ("op", "count")}
    second.close()


@pytest.mark.parametrize("kind", PERSISTENT)
def test_a_snapshot_stays_while_another_store_writes(kind: str, tmp_path: Path) -> None:
    reader, writer = OPENERS[kind](str(tmp_path)), OPENERS[kind](str(tmp_path))
    writer.apply([(key(1), b"a")], "1")
    assert (reader.version(), reader.get(key(1))) == ("1", b"a")
    writer.apply([(key(1), b"b")], "2")
    assert reader.get(key(1)) == b"a"
    assert (reader.version(), reader.get(key(1))) == ("2", b"b")
    reader.close()
    writer.close()


def _apply_versions(kind: str, path: str, upto: int) -> None:
    store = OPENERS[kind](path)
    for version in range(1, upto + 1):
        store.apply([(key(n), b"%d" % version) for n in range(50)], str(version))
    store.close()


@pytest.mark.parametrize("kind", PERSISTENT)
def test_one_process_applies_while_another_reads(kind: str, tmp_path: Path) -> None:
    store = OPENERS[kind](str(tmp_path))
    writer = multiprocessing.get_context("spawn").Process(
        target=_apply_versions, args=(kind, str(tmp_path), 30)
    )
    writer.start()
    while store.version() != "30":
        assert writer.is_alive() or store.version() == "30"
        version = store.version()
        try:
            values = [store.get(key(n)) for n in range(50)]
        except StateError:
            continue  # RocksDB: compacted away under the reader
        # All values are of the one version that the snapshot has.
        assert set(values) == {version.encode() if version else None}
    writer.join()
    store.close()
    assert writer.exitcode == 0


WRITER = """
import sys
from penstock.storage.store import open_store
from penstock.storage.entries import pack_key
store = open_store(sys.argv[1], sys.argv[2])
version = 0
while True:
    version += 1
    value = (b"%d," % version) * 100
    keys = [pack_key(0, b"8 bytes.", b"key%d" % n) for n in range(2000)]
    store.apply([(key, value) for key in keys], str(version))
    print(version, flush=True)
"""


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_a_killed_writer_leaves_a_whole_version(kind, tmp_path: Path) -> None:
    path = str(tmp_path)
    for acknowledged in (1, 2, 3, 5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, kind, path],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert writer.stdout is not None
        for _ in range(acknowledged):
            writer.stdout.readline()
        time.sleep(random.uniform(0, 0.02))  # somewhere in the next version
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        store = open_store(kind, path)
        version = store.version()
        assert version is not None
        assert int(version) >= acknowledged
        expected = (version.encode() + b",") * 100
        assert {value for _, value in store.scan(b"")} == {expected}
        store.apply([(key(1), b"goes on")], "next")
        assert store.version() == "next"
        store.reset()
        store.close()


_groups = st.integers(0, 3)
_keys = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([b"long" * n for n in (115, 116, 117, 118, 119, 120, 121, 130)]),
)
_packed = st.builds(
    pack_key, _groups, st.sampled_from([COUNT, SEEN]), _keys, st.binary(max_size=1), _keys
)
_values = st.one_of(
    st.none(), st.binary(max_size=5), st.integers(0, 30_000).map(lambda size: b"v" * size)
)


class StoreMachine(RuleBasedStateMachine):
    """Random writes, reads and reopenings agree with a dict."""

    opener: Opener

    @initialize()
    def start(self) -> None:
        self.path = tempfile.mkdtemp()
        self.store = self.opener(self.path)
        self.model: dict[bytes, bytes] = {}
        self.version: str | None = None
        self.count = 0

    @rule(changes=st.lists(st.tuples(_packed, _values), max_size=12))
    def apply(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        self.count += 1
        self.version = str(self.count)
        self.store.apply(changes, self.version)
        for k, v in changes:
            if v is None:
                self.model.pop(k, None)
            else:
                self.model[k] = v

    @rule(keys=st.lists(_packed, max_size=5))
    def get(self, keys: list[bytes]) -> None:
        wanted = [*keys, *list(self.model)[:5]]
        assert [self.store.get(k) for k in wanted] == [self.model.get(k) for k in wanted]

    @rule(packed=_packed, cut=st.integers(0, 600), start=st.just(b"") | _packed)
    def scan(self, packed: bytes, cut: int, start: bytes) -> None:
        prefix = packed[:cut]
        under = (kv for kv in self.model.items() if kv[0].startswith(prefix))
        expected = sorted((k, v) for k, v in under if k >= start)
        assert list(self.store.scan(prefix, start)) == expected

    @rule()
    def release(self) -> None:
        self.store.release()

    @precondition(lambda self: not isinstance(self.store, MemoryStore))
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opener(self.path)

    @rule()
    def reset(self) -> None:
        self.store.reset()
        self.model, self.version = {}, None

    @invariant()
    def versions_agree(self) -> None:
        if hasattr(self, "store"):
            assert self.store.version() == self.version

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.path)


@pytest.mark.parametrize("kind", OPENERS)
def test_random_use_agrees_with_a_dict(kind: str) -> None:
    machine = type("Machine", (StoreMachine,), {"opener": staticmethod(OPENERS[kind])})
    examples = {"memory": 30, "lmdb": 100, "rocksdb": 40}[kind]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
