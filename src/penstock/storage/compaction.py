"""When a subtask's checkpoint files are rewritten; `images` does it.

Files of one subtask come oldest first, images before segments. An image holds the whole state of
its moment, a segment the changes of one epoch or of several. Rewriting makes new files; the old
ones stay until nothing retained names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

<<<<<<< HEAD
from penstock.errors import PenstockError
from penstock.storage import crash_points
from penstock.storage.checkpoint_layout import StateFileName, parse_state_file
from penstock.storage.columns import Columns
from penstock.storage.entries import MAX_KEY_GROUP, Entry
=======
>>>>>>> main
from penstock.storage.file_info import FileInfo
from penstock.storage.runs import sorted_runs


@dataclass(frozen=True)
class CompactionPolicy:
    max_segments: int = 24
    small_bytes: int = 16 << 20
    """State below this is made an image whenever its segments are to be merged."""
    part_bytes: int = 64 << 20
    compression: str | None = "zstd"


@dataclass(frozen=True)
class Compaction:
    """What to rewrite: into a full image, or segments into one segment."""

    result: Literal["image", "segment"]
    inputs: tuple[FileInfo, ...]
    key_groups: tuple[int, int] | None = None
    """Keep only these; after rescaling, files hold key groups of other subtasks too."""
    part_bytes: int = CompactionPolicy.part_bytes
    compression: str | None = CompactionPolicy.compression

    def to_json(self) -> dict[str, Any]:
        return {
            "result": self.result,
            "inputs": [info.to_json() for info in self.inputs],
            "key_groups": self.key_groups,
            "part_bytes": self.part_bytes,
            "compression": self.compression,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Compaction:
        inputs = tuple(FileInfo.from_json(info) for info in data["inputs"])
        groups = data["key_groups"]
        key_groups = None if groups is None else (int(groups[0]), int(groups[1]))
        return cls(data["result"], inputs, key_groups, data["part_bytes"], data["compression"])


def plan_compaction(
    files: Sequence[FileInfo],
    policy: CompactionPolicy,
    key_groups: tuple[int, int] | None = None,
) -> Compaction | None:
    """What is worth rewriting now, if anything.

    A new image once the segments weigh as much as the image: so each byte of changes pays for one
    byte of image, however large the state is. The parts of a large merged segment count as one:
    merging them again would give the same parts.
    """
    segments = [info for info in files if info.kind == "segment"]
    segment_bytes = sum(info.bytes for info in segments)
    image_bytes = sum(info.bytes for info in files if info.kind == "image")
    crowded = len(sorted_runs(segments)) > policy.max_segments
    grown = segment_bytes >= max(image_bytes, policy.small_bytes)
    small = segment_bytes + image_bytes <= policy.small_bytes
    result: Literal["image", "segment"]
    if grown or (crowded and small):
        result, inputs = "image", tuple(files)
    elif crowded:
        result, inputs = "segment", tuple(segments)
    else:
        return None
    return Compaction(result, inputs, key_groups, policy.part_bytes, policy.compression)


def urgency(files: Sequence[FileInfo], policy: CompactionPolicy) -> float:
    """How far the segments are beyond what they may be, in number or in weight."""
    segments = [info for info in files if info.kind == "segment"]
    image_bytes = sum(info.bytes for info in files if info.kind == "image")
    weight = sum(info.bytes for info in segments) / max(image_bytes, policy.small_bytes, 1)
    return max(len(sorted_runs(segments)) / max(policy.max_segments, 1), weight)
<<<<<<< HEAD


def run_compaction(
    fs: FileSystem,
    root: str,
    compaction: Compaction,
    out_dir: str,
    name: str,
    out_root: str | None = None,
) -> list[FileInfo]:
    """Write the new files into `out_dir` under `root`, or under another one; in memory is about
    one part and one batch of each input."""
    infos: list[FileInfo] = []
    rows: Iterator[MergedRow] = newest_rows(fs, root, compaction.inputs)
    if compaction.result == "image":
        # Nothing lies below an image that a tombstone could still hide.
        rows = (row for row in rows if row.entry.value is not None)
    if compaction.key_groups is not None:
        lo, hi = compaction.key_groups
        rows = (row for row in rows if lo <= row.entry.key_group <= hi)
    for number, part in enumerate(_parts(rows, compaction.part_bytes)):
        crash_points.reach("image.middle")
        infos.append(
            write_table_file(
                fs,
                out_root or root,
                f"{out_dir}/{name}-{number:05d}.parquet",
                Columns.of(part),
                kind=compaction.result,
                compression=compaction.compression,
            )
        )
    return infos


class MergedRow(NamedTuple):
    """Compared by key, then by age; a file has one row for a key, so no further."""

    key: bytes
    age: int
    entry: Entry


def newest_rows(
    fs: FileSystem,
    root: str,
    inputs: Sequence[FileInfo],
    only: tuple[str, str] | None = None,
) -> Iterator[MergedRow]:
    """The newest row of each key, in order: files are sorted, so this is a merge.

    `only` leaves out all states of all operators but this one.
    """
    runs = enumerate(sorted_runs(inputs))
    streams = [_rows(fs, root, run, -position, only) for position, run in runs]
    last: bytes | None = None
    for row in heapq.merge(*streams):
        if row.key != last:
            last = row.key
            yield row


def live_entries(
    fs: FileSystem,
    root: str,
    inputs: Sequence[FileInfo],
    key_groups: tuple[int, int] | None = None,
    only: tuple[str, str] | None = None,
) -> Iterator[Entry]:
    """What the files of a subtask amount to, in order: without what was changed or removed since.

    `only` takes one state of one operator, `key_groups` those of the subtask alone.
    """
    lo, hi = key_groups or (0, MAX_KEY_GROUP)
    entries: Iterable[Entry]
    if len(sorted_runs(inputs)) == 1 and not any(info.clipped for info in inputs):
        # Nothing to merge, so nothing to compare.
        entries = (
            entry
            for info in inputs
            if only is None or only in info.states
            for found in read_columns(fs, root, info)
            for entry in (found if only is None else found.of_state(*only)).entries()
        )
    else:
        entries = (row.entry for row in newest_rows(fs, root, inputs, only))
    for entry in entries:
        if entry[6] is not None and lo <= entry[0] <= hi:
            yield entry


def sorted_runs(inputs: Sequence[FileInfo]) -> list[list[FileInfo]]:
    """Files in runs that can be read one after the other: the parts of one result are such.

    The parts of a spilled segment are not, though their names are alike: they overlap, and the
    later one wins.
    """
    runs: list[list[FileInfo]] = []
    before: StateFileName | None = None
    for info in inputs:
        name = parse_state_file(info.path)
        if before is not None and name is not None and _is_next_part(before, name):
            runs[-1].append(info)
        else:
            runs.append([info])
        before = name
    return runs


def _is_next_part(before: StateFileName, name: StateFileName) -> bool:
    if name.kind == "segment" or before.part is None or name.part is None:
        return False
    # Rising numbers only: after rescaling a part may be named once per former owner.
    return replace(before, part=name.part) == name and before.part < name.part


def _rows(
    fs: FileSystem,
    root: str,
    infos: Iterable[FileInfo],
    age: int,
    only: tuple[str, str] | None,
) -> Iterator[MergedRow]:
    for info in infos:
        if only is not None and only not in info.states:
            continue
        lo, hi = info.key_groups
        for found in read_columns(fs, root, info):
            columns = found if only is None else found.of_state(*only)
            rows = map(MergedRow, columns.packed_keys(), repeat(age), columns.entries())
            if info.clipped:
                yield from (row for row in rows if lo <= row.entry.key_group <= hi)
            else:
                yield from rows


def _parts(rows: Iterable[MergedRow], part_bytes: int) -> Iterator[list[Entry]]:
    part: list[Entry] = []
    size = 0
    for row in rows:
        part.append(row.entry)
        size += len(row.key) + len(row.entry.value or b"")
        if size >= part_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


def main() -> int:
    os.nice(10)
    job = json.load(sys.stdin)
    fs, root = filesystem_for(job["root"])
    try:
        compaction = Compaction.from_json(job["compaction"])
        infos = run_compaction(fs, root, compaction, job["out_dir"], job["name"])
    except (PenstockError, OSError) as error:
        json.dump({"error": type(error).__name__, "message": str(error)}, sys.stdout)
        return 1
    json.dump({"files": [info.to_json() for info in infos]}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
=======
>>>>>>> main
