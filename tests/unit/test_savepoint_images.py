"""Sorted entries become the files of subtasks, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidArgumentError
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import encode_key
from penstock.state_processor import images
from penstock.state_processor.encoding import entries_batch
from penstock.state_processor.images import Images, check_result
from penstock.storage.entries import pack_key, state_id
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.table_file import read_table_file

NAME = ("a", "n")


def _entries(keys: list[str]) -> list[Any]:
    found = []
    for key in keys:
        data = encode_key(key)
        group = key_group_of(data, 128)
        packed = pack_key(group, state_id(*NAME), data)
        found.append((subtask_of(group, 128, 3), packed, b"\x01", None))
    return sorted(found)


def _written(root: Path, entries: list[Any]) -> list[tuple[int, int, Any]]:
    batches = [entries_batch(entries[i : i + 7]) for i in range(0, len(entries), 7)]
    results = Images(str(root), 1, "v", "abc", (NAME,)).write(iter(batches))
    return [
        (row["subtask"], row["part"], json.loads(row["result"]))
        for batch in results
        for row in batch.to_pylist()
    ]


def test_each_subtask_has_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_PART_ROWS", 10)
    keys = [f"key {n}" for n in range(100)]
    written = _written(tmp_path, _entries(keys))
    numbers: dict[int, list[int]] = {}
    found = []
    for subtask, part, info in written:
        numbers.setdefault(subtask, []).append(part)
        for entries in read_table_file(LocalFileSystem(), str(tmp_path), FileInfo.from_json(info)):
            assert {subtask_of(entry.key_group, 128, 3) for entry in entries} == {subtask}
            found += [entry.key for entry in entries]
    assert sorted(found) == sorted(map(encode_key, keys))
    assert set(numbers) == {0, 1, 2}
    assert all(parts == list(range(len(parts))) for parts in numbers.values())
    assert len(written) >= 10


def test_a_key_that_comes_twice(tmp_path: Path) -> None:
    *_, (_, part, result) = _written(tmp_path, _entries(["a", "b", "a"]))
    assert part == -1
    with pytest.raises(InvalidArgumentError, match="two rows for key 'a'"):
        check_result(result)
