from __future__ import annotations

import bisect
import itertools
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import CheckpointCorruptError, InvalidArgumentError
from penstock.storage import table_file
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.row_groups import RowGroup, cut
from penstock.storage.table_file import (
    ReadMeter,
    read_columns,
    read_table_file,
    write_table_file,
)

fs = LocalFileSystem()

names = st.sampled_from(["op", "other-op", "ünï", ""])
entries = st.builds(
    Entry,
    st.integers(0, 32767),
    names,
    names,
    st.binary(max_size=9),
    st.binary(max_size=3),
    st.binary(max_size=3),
    st.none() | st.binary(max_size=9),
)


def read_all(root, info: FileInfo) -> list[Entry]:
    return [entry for batch in read_table_file(fs, str(root), info) for entry in batch]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(entries, min_size=1, max_size=40), st.sampled_from([None, "zstd"]))
def test_what_was_written_is_read_sorted(tmp_path, written, compression):
    info = write_table_file(fs, str(tmp_path), "state/f", written, compression=compression)
    assert read_all(tmp_path, info) == sorted(written, key=Entry.packed)
    assert info.rows == len(written)
    assert info.bytes == (tmp_path / "state/f").stat().st_size
    assert info.operators == tuple(sorted({entry.operator for entry in written}))
    groups = [entry.key_group for entry in written]
    assert info.key_groups == (min(groups), max(groups))
    assert FileInfo.from_json(info.to_json()) == info


def test_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "GROUP_BYTES", 1000)
    monkeypatch.setattr(table_file, "BATCH_ROWS", 7)
    monkeypatch.setattr(table_file, "_WHOLE", 0)
    written = [
        Entry(i % 5, f"op{i % 3}", "s", b"%d" % i, b"", b"", None if i % 4 == 0 else b"v" * i)
        for i in range(300)
    ]
    info = write_table_file(fs, str(tmp_path), "f", written, kind="image")
    assert pq.ParquetFile(tmp_path / "f").num_row_groups > 10
    assert read_all(tmp_path, info) == sorted(written, key=Entry.packed)
    assert info.kind == "image"


def grouped(root, monkeypatch, rows: int = 2000) -> tuple[FileInfo, list[Entry]]:
    """A file of 20 key groups and about as many row groups, and what is in it."""
    monkeypatch.setattr(table_file, "GROUP_BYTES", 1200)
    written = [Entry(i % 20, "op", "s", b"%05d" % i, b"", b"", b"x%d" % i) for i in range(rows)]
    info = write_table_file(fs, str(root), "f", written, kind="image")
    return info, sorted(written, key=Entry.packed)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.tuples(st.integers(0, 25), st.integers(0, 25)), st.tuples(*[st.integers(0, 19)] * 2))
def test_a_range_of_key_groups(tmp_path, monkeypatch, wanted, clip):
    info, rows = grouped(tmp_path, monkeypatch)
    clipped = info.clipped_to((min(clip), max(clip)))
    for file, own in ((info, info.key_groups), (clipped, clipped.key_groups)):
        found = [e for c in read_columns(fs, str(tmp_path), file, wanted) for e in c.entries()]
        lo, hi = max(own[0], wanted[0]), min(own[1], wanted[1])
        assert found == [row for row in rows if lo <= row.key_group <= hi]


def test_readers_of_parts_read_each_byte_about_once(tmp_path, monkeypatch):
    info, _ = grouped(tmp_path, monkeypatch, rows=20_000)
    one, all_ = ReadMeter(), ReadMeter()
    list(read_columns(fs, str(tmp_path), info, (7, 7), one))
    footer = info.footer[0]
    assert footer < one.bytes < footer + info.bytes / 15
    for first in range(0, 20, 4):
        list(read_columns(fs, str(tmp_path), info, (first, first + 3), all_))
    # Row groups end with their key groups, so that only the index is read more than once.
    assert all_.bytes == (info.bytes - footer) + 5 * footer


def test_only_files_of_several_row_groups_have_an_index(tmp_path, monkeypatch):
    info, _ = grouped(tmp_path, monkeypatch, rows=20)
    assert info.footer is None
    assert "footer" not in info.to_json()
    info, _ = grouped(tmp_path, monkeypatch)
    assert FileInfo.from_json(info.to_json()) == info
    without = {key: value for key, value in info.to_json().items() if key != "footer"}
    older = FileInfo.from_json(without)
    assert read_all(tmp_path, older) == read_all(tmp_path, info)


@pytest.mark.parametrize("damage", ["wanted", "footer", "other", "truncated", "longer"])
def test_damage_in_what_is_read_is_found(tmp_path, monkeypatch, damage):
    info, rows = grouped(tmp_path, monkeypatch)
    data = bytearray((tmp_path / "f").read_bytes())
    index = table_file._Checked(fs.open_read(str(tmp_path / "f")), "f", info, ReadMeter()).groups
    wanted = next(group for group in index if group.overlaps((9, 9)))
    if damage == "wanted":
        data[wanted.offset + wanted.bytes // 2] ^= 1
    elif damage == "footer":
        data[-info.footer[0] // 2] ^= 1
    elif damage == "other":
        data[index[0].offset + 10] ^= 1
    elif damage == "truncated":
        del data[-1:]
    else:
        data += b"x"
    (tmp_path / "f").write_bytes(data)
    batches = read_columns(fs, str(tmp_path), info, (9, 9))
    if damage == "other":  # is nobody's business here
        found = [entry for columns in batches for entry in columns.entries()]
        assert found == [row for row in rows if row.key_group == 9]
        return
    with pytest.raises(CheckpointCorruptError, match="f is damaged"):
        next(batches)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=60),
    st.integers(1, 60),
)
def test_row_groups_are_of_the_size_asked_for_and_prefer_whole_key_groups(rows, target):
    groups = sorted(group for group, _ in rows)
    sizes = list(itertools.accumulate((size for _, size in rows), initial=0))
    pieces = list(cut(sizes, groups, target))
    assert [start for start, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] == len(rows)
    for start, end in pieces:
        size = sizes[end] - sizes[start]
        assert end - start == 1 or size <= 2 * target or sizes[end - 1] - sizes[start] < target
        at_boundary = end == len(rows) or groups[end] != groups[end - 1]
        if not at_boundary:
            rest = bisect.bisect_right(groups, groups[end])
            assert sizes[rest] - sizes[start] > 2 * target


def test_row_groups_overlap_ranges_that_touch_them():
    group = RowGroup((3, 5), 0, 1, "")
    expected = {(0, 2): False, (0, 3): True, (4, 4): True, (5, 9): True, (6, 9): False}
    assert {wanted: group.overlaps(wanted) for wanted in expected} == expected


def test_others_read_it_as_plain_columns(tmp_path):
    write_table_file(fs, str(tmp_path), "f", [Entry(3, "op", "s", b"k", b"n", b"", None)])
    table = pq.ParquetFile(tmp_path / "f").read()
    assert table.schema.names == [
        "key_group", "operator", "state", "key", "namespace", "map_key", "value",
    ]  # fmt: skip
    assert table.schema.types == [pa.int32(), pa.string(), pa.string(), *[pa.binary()] * 4]
    assert table.to_pylist() == [
        {
            "key_group": 3,
            "operator": "op",
            "state": "s",
            "key": b"k",
            "namespace": b"n",
            "map_key": b"",
            "value": None,
        }
    ]


def test_no_rows_no_file(tmp_path):
    with pytest.raises(InvalidArgumentError, match="no rows"):
        write_table_file(fs, str(tmp_path), "f", [])
    assert fs.list(str(tmp_path)) == []


@pytest.mark.parametrize("whole", [1 << 20, 0])
@pytest.mark.parametrize("damage", ["bit", "truncated", "longer", "missing"])
def test_damage_is_found_before_any_row_is_used(tmp_path, monkeypatch, damage, whole):
    monkeypatch.setattr(table_file, "_WHOLE", whole)
    rows = [Entry(0, "op", "s", b"%d" % i, b"", b"", os.urandom(20)) for i in range(500)]
    info = write_table_file(fs, str(tmp_path), "state/f.parquet", rows)
    path = tmp_path / "state" / "f.parquet"
    data = bytearray(path.read_bytes())
    if damage == "bit":
        data[len(data) // 2] ^= 1
    elif damage == "truncated":
        del data[-1:]
    elif damage == "longer":
        data += b"x"
    path.write_bytes(data)
    if damage == "missing":
        path.unlink()
    batches = read_table_file(fs, str(tmp_path), info)
    with pytest.raises(CheckpointCorruptError, match=r"state/f\.parquet is damaged"):
        next(batches)


def test_neither_pandas_nor_arrows_compute_is_imported():
    code = """
import sys, tempfile
from penstock.storage.table_file import *
fs = __import__("penstock.storage.filesystem", fromlist=["x"]).LocalFileSystem()
root = tempfile.mkdtemp()
rows = [Entry(0, "op", "s", b"k", b"", b"", None), Entry(0, "p", "s", b"k", b"", b"", b"v")]
list(read_table_file(fs, root, write_table_file(fs, root, "f", rows)))
assert "pandas" not in sys.modules and "pyarrow.compute" not in sys.modules
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
