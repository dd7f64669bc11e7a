from __future__ import annotations

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
from penstock.storage.table_file import read_table_file, write_table_file

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
