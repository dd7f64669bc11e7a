"""Rewriting a subtask's files: into an image of its state, or segments into one.

Run as ``python -m penstock.storage.images`` it takes jobs on stdin, each a line of JSON, and
answers each by a line on stdout, so that a driver can leave the work to another process of low
priority. It ends with its driver, when it has had no job for some time, and when one fails.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.storage import crash_points
from penstock.storage.columns import numbers
from penstock.storage.compaction import Compaction, CompactionPolicy
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.filesystem import FileSystem, filesystem_for
from penstock.storage.merging import Merge, Sizes, concatenated, row_groups
from penstock.storage.row_groups import GROUP_BYTES, cut
from penstock.storage.runs import sorted_runs
from penstock.storage.table_file import read_whole, write_row_groups

_IDLE_SECONDS = 60.0


def run_compaction(
    fs: FileSystem, root: str, compaction: Compaction, out_dir: str, name: str
) -> list[FileInfo]:
    """Write the new files into `out_dir` under `root`; in memory is about one part and one batch
    of each input."""
    # Nothing lies below an image that a tombstone could still hide.
    tombstones = compaction.result != "image"
    merge = Merge(fs, root, compaction.key_groups, tombstones)
    return _write_parts(
        merge,
        compaction.inputs,
        (fs, root),
        f"{out_dir}/{name}",
        kind=compaction.result,
        part_bytes=compaction.part_bytes,
        compression=compaction.compression,
    )


def write_image(
    fs_in: FileSystem,
    root_in: str,
    files: Sequence[FileInfo],
    key_groups: tuple[int, int],
    fs_out: FileSystem,
    root_out: str,
    out_dir: str,
    name: str,
    *,
    part_bytes: int = CompactionPolicy.part_bytes,
    compression: str | None = CompactionPolicy.compression,
) -> list[FileInfo]:
    """Write the state that a subtask's files lead to, somewhere else, as one image in parts.

    Each of its entries is there once, in order, and nothing else is. Files that are such an image
    already are copied. `name` is one that `image_name` makes.
    """
    as_they_are = _parts_of_one_image(files, key_groups)
    if as_they_are is not None:
        return [
            copy_file(fs_in, root_in, info, fs_out, root_out, _part_path(f"{out_dir}/{name}", part))
            for part, info in enumerate(as_they_are)
        ]
    return _write_parts(
        Merge(fs_in, root_in, key_groups, tombstones=False),
        files,
        (fs_out, root_out),
        f"{out_dir}/{name}",
        kind="image",
        part_bytes=part_bytes,
        compression=compression,
    )


def copy_file(
    fs_in: FileSystem, root_in: str, info: FileInfo, fs_out: FileSystem, root_out: str, path: str
) -> FileInfo:
    """Copy a file whose bytes are as the manifest says; what a manifest says of the copy."""
    fs_out.write(os.path.join(root_out, path), read_whole(fs_in, root_in, info))
    return replace(info, path=path)


def _parts_of_one_image(
    files: Sequence[FileInfo], key_groups: tuple[int, int]
) -> list[FileInfo] | None:
    """The files in the order of their key groups if together they are an image, without rows of
    other subtasks and without any row twice. After rescaling they may be images of several."""
    for info in files:
        lo, hi = info.key_groups
        if info.kind != "image" or info.clipped or lo < key_groups[0] or hi > key_groups[1]:
            return None
    runs = sorted(sorted_runs(files), key=lambda run: run[0].key_groups)
    for before, after in pairwise(runs):
        if before[-1].key_groups[1] >= after[0].key_groups[0]:
            return None
    return [info for run in runs for info in run]


def _write_parts(
    merge: Merge,
    files: Sequence[FileInfo],
    out: tuple[FileSystem, str],
    stem: str,
    *,
    kind: FileKind,
    part_bytes: int,
    compression: str | None,
) -> list[FileInfo]:
    infos: list[FileInfo] = []
    for rows in _parts(merge.rows(files), part_bytes):
        crash_points.reach("image.middle")
        batch, states = merge.finished(rows)
        infos.append(
            write_row_groups(
                *out,
                _part_path(stem, len(infos)),
                list(row_groups(batch, GROUP_BYTES)),
                states,
                kind=kind,
                compression=compression,
            )
        )
    return infos


def _part_path(stem: str, number: int) -> str:
    return f"{stem}-{number:05d}.parquet"


def _parts(batches: Iterable[pa.RecordBatch], part_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows in parts of about this size."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += Sizes(batch).total
        if size >= part_bytes:
            rows = concatenated(waiting)
            sizes = Sizes(rows)
            waiting, size = [], 0
            for start, end in cut(sizes, numbers(rows.column(0)), part_bytes):
                part = rows.slice(start, end - start)
                if sizes[end] - sizes[start] >= part_bytes:
                    yield part
                else:
                    waiting, size = [part], sizes[end] - sizes[start]
    if waiting:
        yield concatenated(waiting)


def main() -> int:
    os.nice(10)
    while line := _next_line():
        if not _do(json.loads(line)):
            return 1
        pa.default_memory_pool().release_unused()
    return 0


def _next_line() -> bytes:
    """Nothing if the driver has ended, or has had no work for some time."""
    readable, _, _ = select.select([sys.stdin.buffer], [], [], _IDLE_SECONDS)
    return sys.stdin.buffer.readline() if readable else b""


def _do(job: dict[str, Any]) -> bool:
    fs, root = filesystem_for(job["root"])
    answer: dict[str, Any]
    try:
        compaction = Compaction.from_json(job["compaction"])
        infos = run_compaction(fs, root, compaction, job["out_dir"], job["name"])
        answer = {"name": job["name"], "files": [info.to_json() for info in infos]}
    except (PenstockError, OSError) as error:
        answer = {"name": job["name"], "error": type(error).__name__, "message": str(error)}
    try:
        print(json.dumps(answer), flush=True)
    except BrokenPipeError:
        # The driver has died meanwhile: nobody is left to be told, in its log neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "files" in answer


if __name__ == "__main__":
    sys.exit(main())
