from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import CheckpointCorruptError
from penstock.storage import crash_points, images, table_file
from penstock.storage.checkpoint_layout import image_name, merged_name, segment_path
from penstock.storage.columns import Columns, to_arrow
from penstock.storage.compaction import Compaction
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.images import copy_file, run_compaction, write_image
from penstock.storage.merging import Merge
from penstock.storage.table_file import read_table_file, write_table_file

fs = LocalFileSystem()
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def entry(number: int, value: bytes | None, group: int = 0) -> Entry:
    return Entry(group, "op", "s", b"%d" % number, b"", b"", value)


def read_all(root, infos) -> list[Entry]:
    return [e for i in infos for batch in read_table_file(fs, str(root), i) for e in batch]


versions = st.lists(
    st.dictionaries(st.integers(0, 12), st.none() | st.binary(max_size=3), min_size=1),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(versions, st.booleans(), st.booleans(), st.sampled_from([1, 30, 1 << 20]))
def test_newest_wins(tmp_path, changes, spilled, full, part_bytes):
    """Whether the changes are of several epochs, or parts of one that outgrew memory."""
    infos, model = [], {}
    for number, change in enumerate(changes):
        rows = [entry(k, v, group=k % 3) for k, v in change.items()]
        epoch, part = (0, number) if spilled else (number, 0)
        path = segment_path(epoch, "v", 0, "t", part)
        infos.append(write_table_file(fs, str(tmp_path), path, rows))
        model.update(change)
    result = "image" if full else "segment"
    name = (image_name if full else merged_name)(9, "v", 0, "t")
    out = run_compaction(
        fs, str(tmp_path), Compaction(result, tuple(infos), part_bytes=part_bytes), "state", name
    )
    expected = [entry(k, v, k % 3) for k, v in model.items() if v is not None or not full]
    assert read_all(tmp_path, out) == sorted(expected, key=Entry.packed)
    assert {i.kind for i in out} <= {result}
    # An image of the image and later changes.
    later = write_table_file(
        fs, str(tmp_path), segment_path(10, "v", 0, "t"), [entry(5, b"new", 2), entry(6, None)]
    )
    again = run_compaction(
        fs,
        str(tmp_path),
        Compaction("image", (*out, later), (0, 1)),
        "state",
        image_name(10, "v", 0, "t"),
    )
    model.update({5: b"new", 6: None})
    expected = [entry(k, v, k % 3) for k, v in model.items() if v is not None and k % 3 < 2]
    assert read_all(tmp_path, again) == sorted(expected, key=Entry.packed)


class Chains:
    """The files of a job's subtasks, through whatever happens to them, and what they lead to."""

    def __init__(self, root) -> None:
        self.root = str(root)
        self.chains: list[list[FileInfo]] = [[]]
        self.model: dict[bytes, Entry] = {}
        self.files = 0

    def changed(self, entries: list[Entry]) -> None:
        self.files += 1
        for subtask, groups in enumerate(self.ranges()):
            mine = [e for e in entries if groups[0] <= e.key_group <= groups[1]]
            if newest := {e.packed(): e for e in mine}:
                path = segment_path(self.files, "v", subtask, "t")
                info = write_table_file(fs, self.root, path, list(newest.values()))
                self.chains[subtask].append(info)
                self.model.update(newest)

    def rewritten(self, result: str) -> None:
        self.files += 1
        for subtask, groups in enumerate(self.ranges()):
            files = self.chains[subtask]
            inputs = [f for f in files if result == "image" or f.kind == "segment"]
            before = files[: len(files) - len(inputs)]
            name = (image_name if result == "image" else merged_name)(self.files, "v", subtask, "t")
            compaction = Compaction(result, tuple(inputs), groups, part_bytes=60)  # type: ignore[arg-type]
            self.chains[subtask] = [
                *before,
                *run_compaction(fs, self.root, compaction, "state", name),
            ]

    def rescaled(self, parallelism: int) -> None:
        owned = [
            part
            for groups, files in zip(self.ranges(), self.chains, strict=True)
            for file in files
            if (part := file.clipped_to(groups)) is not None
        ]
        self.chains = [[] for _ in range(parallelism)]
        self.chains = [
            [file for file in owned if file.overlaps(groups, None)] for groups in self.ranges()
        ]

    def ranges(self) -> list[tuple[int, int]]:
        count = len(self.chains)
        return [(i * GROUPS // count, (i + 1) * GROUPS // count - 1) for i in range(count)]


GROUPS = 6
entries = st.builds(
    Entry,
    st.integers(0, GROUPS - 1),
    st.sampled_from(["op", "ünï"]),
    st.sampled_from(["s", "t", ""]),
    # Longer than 127 bytes, too: then a length has two.
    st.binary(max_size=2) | st.sampled_from([b"k" * 127, b"k" * 128, b"k" * 2000]),
    st.binary(max_size=1) | st.just(b"n" * 130),
    st.binary(max_size=1),
    st.none() | st.binary(max_size=9),
)
events = st.one_of(
    st.lists(entries, min_size=1, max_size=25),
    st.sampled_from(["image", "segment"]),
    st.integers(1, 3),
)


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(events, max_size=8), st.sampled_from([1, 60, 1 << 20]))
def test_an_image_elsewhere_holds_what_the_files_lead_to(
    tmp_path_factory, monkeypatch, happened, part_bytes
):
    for module in (images, table_file):
        monkeypatch.setattr(module, "GROUP_BYTES", 30)
    monkeypatch.setattr(table_file, "BATCH_ROWS", 4)
    monkeypatch.setattr(table_file, "_WHOLE", 600)
    chains = Chains(tmp_path_factory.mktemp("job"))
    for event in happened:
        if isinstance(event, str):
            chains.rewritten(event)
        elif isinstance(event, int):
            chains.rescaled(event)
        else:
            chains.changed(event)
    savepoint = tmp_path_factory.mktemp("savepoint")
    found = []
    for subtask, groups in enumerate(chains.ranges()):
        name, files = image_name(99, "v", subtask, "t"), chains.chains[subtask]
        place = (fs, str(savepoint), "state", name)
        made = write_image(fs, chains.root, files, groups, *place, part_bytes=part_bytes)
        rows = read_all(savepoint, made)
        assert rows == sorted(rows, key=Entry.packed)
        assert {row.key_group for row in rows} <= set(range(groups[0], groups[1] + 1))
        assert {i.kind for i in made} <= {"image"}
        assert not any(i.clipped for i in made)
        states = {name for i in made for name in i.states}
        assert states == {(row.operator, row.state) for row in rows}
        found += rows
    live = [entry for entry in chains.model.values() if entry.value is not None]
    assert found == sorted(live, key=Entry.packed)
    # Whoever reads all files as a table finds each entry once.
    on_disk = [pq.read_table(path).num_rows for path in savepoint.rglob("*.parquet")]
    assert sum(on_disk) == len(live)


def test_what_is_an_image_already_is_copied(tmp_path):
    rows = [entry(n, b"v", group=n % 8) for n in range(100)]
    segment = write_table_file(fs, str(tmp_path), segment_path(1, "v", 0, "t"), rows)
    compaction = Compaction("image", (segment,), (0, 7), part_bytes=100)
    made = run_compaction(fs, str(tmp_path), compaction, "state", image_name(1, "v", 0, "t"))

    def written(name: str, files: list[FileInfo], groups: tuple[int, int]) -> list[FileInfo]:
        place = (fs, str(tmp_path), name, image_name(2, "v", 0, "t"))
        return write_image(fs, str(tmp_path), files, groups, *place)

    copies = written("same", made, (0, 7))
    assert [(i.bytes, i.checksum) for i in copies] == [(i.bytes, i.checksum) for i in made]
    for before, after in zip(made, copies, strict=True):
        assert (tmp_path / before.path).read_bytes() == (tmp_path / after.path).read_bytes()
    # Anything else is merged, into one part here.
    later = write_table_file(fs, str(tmp_path), segment_path(2, "v", 0, "t"), rows[:1])
    cut_off = [part for i in made if (part := i.clipped_to((0, 4)))]
    assert len(made) > 1
    assert len(written("later", [*made, later], (0, 7))) == 1
    assert len(written("clipped", cut_off, (0, 4))) == 1
    assert len(written("twice", [*made, *made], (0, 7))) == 1
    name = f"state/{image_name(3, 'v', 0, 't')}-00000.parquet"
    single = write_table_file(fs, str(tmp_path), name, rows[::8], kind="image")
    assert [i.rows for i in written("one", [single, single], (0, 7))] == [len(rows[::8])]


@given(st.lists(entries, min_size=1, max_size=20))
def test_packed_keys_are_those_of_the_stores(rows):
    merge = Merge(fs, "")
    batch = merge._numbered(to_arrow(Columns.of(rows)))
    assert merge.packed_keys(batch).to_pylist() == [row.packed() for row in rows]


def test_a_damaged_file_is_not_copied(tmp_path):
    info = write_table_file(fs, str(tmp_path), "a", [entry(1, b"v")], kind="image")
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[::-1])
    with pytest.raises(CheckpointCorruptError, match="a is damaged: checksum"):
        copy_file(fs, str(tmp_path), info, fs, str(tmp_path), "b")
    (tmp_path / "a").unlink()
    with pytest.raises(CheckpointCorruptError, match="missing"):
        write_image(fs, str(tmp_path), [info], (0, 7), fs, str(tmp_path), "out", "image")
    assert fs.list(str(tmp_path)) == []


def test_pandas_is_not_imported_for_an_image(tmp_path):
    segment = write_table_file(fs, str(tmp_path), "a", [entry(1, b"v"), entry(2, None)])
    code = """
import json, sys
from penstock.storage.images import *
from penstock.storage.compaction import Compaction
fs, root = filesystem_for(sys.argv[1])
info = FileInfo.from_json(json.loads(sys.argv[2]))
assert [i.rows for i in write_image(fs, root, [info, info], (0, 7), fs, root, "out", "i")] == [1]
assert "pandas" not in sys.modules
"""
    arguments = [str(tmp_path), json.dumps(segment.to_json())]
    subprocess.run([sys.executable, "-c", code, *arguments], env=ENV, check=True)


def run_process(root, compaction: Compaction, **env: str) -> subprocess.CompletedProcess[str]:
    job = {
        "root": str(root),
        "compaction": compaction.to_json(),
        "out_dir": "state",
        "name": "img",
    }
    return subprocess.run(
        [sys.executable, "-m", "penstock.storage.images"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**ENV, **env},
        check=False,
    )


def test_as_a_process_that_dies_and_is_started_again(tmp_path):
    rows = [entry(n, b"v" * 50) for n in range(100)]
    segment = write_table_file(fs, str(tmp_path), "state/seg", rows)
    compaction = Compaction("image", (segment,), part_bytes=1000)
    crash = {crash_points.AT: "image.middle:2", crash_points.ONCE: str(tmp_path / "died")}
    died = run_process(tmp_path, compaction, **crash)
    assert (died.returncode, died.stdout) == (37, "")
    assert fs.list(str(tmp_path / "state")) == ["img-00000.parquet", "seg"]
    done = run_process(tmp_path, compaction, **crash)
    assert done.returncode == 0, done.stderr
    infos = [FileInfo.from_json(i) for i in json.loads(done.stdout)["files"]]
    assert len(infos) > 3
    assert read_all(tmp_path, infos) == sorted(rows, key=Entry.packed)


def test_the_process_reports_a_damaged_input(tmp_path):
    segment = write_table_file(fs, str(tmp_path), "seg", [entry(1, b"v")])
    fs.write(str(tmp_path / "seg"), b"garbage")
    failed = run_process(tmp_path, Compaction("image", (segment,), (0, 5)))
    assert failed.returncode == 1
    answer = json.loads(failed.stdout)
    assert answer["error"] == "CheckpointCorruptError"
    assert "seg is damaged" in answer["message"]
