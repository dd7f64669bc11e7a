"""When a subtask's checkpoint files are rewritten; `images` does it.

Files of one subtask come oldest first, images before segments. An image holds the whole state of
its moment, a segment the changes of one epoch or of several. Rewriting makes new files; the old
ones stay until nothing retained names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
