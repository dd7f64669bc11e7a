from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.storage import crash_points
from penstock.storage.catch_up import CatchUp, Chain, catch_up
from penstock.storage.compaction import Compaction
from penstock.storage.entries import Entry, state_id
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.images import run_compaction
from penstock.storage.memory_store import MemoryStore
from penstock.storage.store import Store, open_store
from penstock.storage.table_file import write_table_file

fs = LocalFileSystem()
ALL = (0, 127)


def entry(number: int, value: bytes | None, operator: str = "op") -> Entry:
    return Entry(number % 8, operator, "s", b"%d" % number, b"", b"", value)


def chain_of(root, versions: list[list[Entry]]) -> Chain:
    return [
        (f"v{n}", [write_table_file(fs, str(root), f"v{n}", rows)] if rows else [])
        for n, rows in enumerate(versions)
    ]


def content(store: Store) -> dict[bytes, bytes]:
    return dict(store.scan(b""))


def up(store: Store, root, chain: Chain, target: str, **options) -> CatchUp:
    options = {"operators": None, "key_groups": ALL, **options}
    return catch_up(store, fs, str(root), chain, target, **options)


def test_builds_catches_up_and_does_nothing(tmp_path):
    chain = chain_of(
        tmp_path, [[entry(1, b"a"), entry(2, b"b")], [entry(1, None)], [], [entry(3, b"c")]]
    )
    store = MemoryStore()
    assert up(store, tmp_path, chain, "v1") == CatchUp(rebuilt=True, rows=3)
    assert content(store) == {entry(2, b"").packed(): b"b"}
    assert up(store, tmp_path, chain, "v3") == CatchUp(rebuilt=False, rows=1)
    assert store.version() == "v3"
    assert up(store, tmp_path, chain, "v3") == CatchUp(rebuilt=False, rows=0)
    assert store.states() == {state_id("op", "s"): ("op", "s")}


def test_a_version_that_is_not_on_the_chain_is_thrown_away(tmp_path):
    chain = chain_of(tmp_path, [[entry(1, b"a")]])
    store = MemoryStore()
    store.apply([(b"junk", b"")], "an attempt that lost")
    assert up(store, tmp_path, chain, "v0") == CatchUp(rebuilt=True, rows=1)
    assert content(store) == {entry(1, b"").packed(): b"a"}


def test_a_store_ahead_of_the_target_is_rebuilt(tmp_path):
    chain = chain_of(tmp_path, [[entry(1, b"a")], [entry(1, b"b")]])
    store = MemoryStore()
    up(store, tmp_path, chain, "v1")
    assert up(store, tmp_path, chain, "v0").rebuilt
    assert content(store) == {entry(1, b"").packed(): b"a"}


def test_only_own_key_groups_and_operators(tmp_path):
    rows = [entry(n, b"%d" % n, operator) for n in range(40) for operator in ("op", "other")]
    chain = chain_of(tmp_path, [rows])
    store = MemoryStore()
    result = up(store, tmp_path, chain, "v0", operators={"op"}, key_groups=(2, 4))
    wanted = [r for r in rows if r.operator == "op" and 2 <= r.key_group <= 4]
    assert content(store) == {r.packed(): r.value for r in wanted}
    assert result.rows == len(wanted)


def test_files_of_others_are_not_even_opened(tmp_path):
    chain = chain_of(tmp_path, [[entry(1, b"a")]])
    fs.delete(str(tmp_path / "v0"))
    assert up(MemoryStore(), tmp_path, chain, "v0", key_groups=(2, 4)).rows == 0
    assert up(MemoryStore(), tmp_path, chain, "v0", operators=["other"]).rows == 0


def test_an_unknown_target_is_an_error(tmp_path):
    with pytest.raises(StateError, match="not on the chain"):
        up(MemoryStore(), tmp_path, chain_of(tmp_path, [[entry(1, b"a")]]), "v9")


def test_merged_segments_lead_on_from_the_versions_they_cover(tmp_path):
    chain = chain_of(
        tmp_path,
        [[entry(1, b"a"), entry(2, b"a")], [entry(1, b"b")], [entry(2, None)], [entry(3, b"d")]],
    )
    store = MemoryStore()
    up(store, tmp_path, chain, "v1")
    inputs = tuple(files[0] for _, files in chain[1:])
    merged = run_compaction(fs, str(tmp_path), Compaction("segment", inputs), "out", "m")
    compacted = [chain[0], ("v3", merged)]
    covers = {"v3": ["v0", "v1", "v2"]}
    assert up(store, tmp_path, compacted, "v3", covers=covers) == CatchUp(False, 3)
    assert content(store) == {entry(1, b"").packed(): b"b", entry(3, b"").packed(): b"d"}


changes = st.lists(
    st.dictionaries(st.integers(0, 9), st.none() | st.binary(max_size=2)), min_size=1, max_size=6
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes, st.data())
def test_any_way_leads_to_the_same_content(tmp_path, versions, data):
    chain = chain_of(tmp_path, [[entry(k, v) for k, v in v.items()] for v in versions])
    stops = st.integers(0, len(versions) - 1)
    store = MemoryStore()
    for stop in data.draw(st.lists(stops, min_size=1, max_size=4)):
        up(store, tmp_path, chain, f"v{stop}")
        model: dict[int, bytes | None] = {}
        for version in versions[: stop + 1]:
            model.update(version)
        assert content(store) == {
            entry(k, v).packed(): v for k, v in model.items() if v is not None
        }


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_a_late_attempt_of_an_older_epoch_does_not_disturb(tmp_path, kind):
    chain = chain_of(tmp_path, [[entry(1, b"old")], [entry(1, b"new")]])
    store, late = (open_store(kind, str(tmp_path / "store")) for _ in range(2))
    up(store, tmp_path, chain, "v1")
    assert up(late, tmp_path, chain, "v0").rebuilt
    assert store.get(entry(1, b"").packed()) == b"new"
    assert late.get(entry(1, b"").packed()) == b"old"
    assert store.version() == "v0"
    store.close()
    late.close()


PROCESS = """
import json, sys
from penstock.storage.catch_up import catch_up
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.store import open_store
kind, path, root, target, chain = sys.argv[1:]
chain = [(v, [FileInfo.from_json(f) for f in files]) for v, files in json.loads(chain)]
store = open_store(kind, path)
print(catch_up(store, LocalFileSystem(), root, chain, target, None, (0, 127)))
"""


def start(kind: str, path: Path, root: Path, chain: Chain, target: str, **env: str):
    text = json.dumps([(v, [f.to_json() for f in files]) for v, files in chain])
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, kind, str(path), str(root), target, text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_dying_at_each_version_loses_nothing(tmp_path, kind):
    versions = [[entry(n, b"%d" % v) for n in range(50)] for v in range(3)]
    chain = chain_of(tmp_path, versions)
    for at in (1, 2, 3):
        path = tmp_path / f"store{at}"
        died = start(kind, path, tmp_path, chain, "v2", **{
            crash_points.AT: f"store.catch_up:{at}"})  # fmt: skip
        died.communicate()
        assert died.returncode == crash_points.EXIT_CODE
        store = open_store(kind, str(path))
        assert store.version() == (None if at == 1 else f"v{at - 2}")
        up(store, tmp_path, chain, "v2")
        assert content(store) == {e.packed(): b"2" for e in versions[2]}
        store.close()


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_several_processes_at_once(tmp_path, kind):
    versions = [[entry(n, b"%d" % v) for n in range(200)] for v in range(8)]
    chain = chain_of(tmp_path, versions)
    running = [start(kind, tmp_path / "store", tmp_path, chain, "v7") for _ in range(3)]
    answers = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    # One did the work, the others waited for it.
    assert sum("rows=1600" in answer for answer in answers) == 1
    assert sum("rows=0" in answer for answer in answers) == 2
    store = open_store(kind, str(tmp_path / "store"))
    assert store.version() == "v7"
    assert set(content(store).values()) == {b"7"}
    store.close()
