"""What a manifest says about one segment or image."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

FileKind = Literal["segment", "image", "loop"]


@dataclass(frozen=True)
class FileInfo:
    """One immutable file; the range of key groups is inclusive at both ends."""

    path: str
    """Relative to the job's root directory, so that the directory can be moved."""
    rows: int
    bytes: int
    checksum: str
    """xxh3_128 of the file's bytes, in hex."""
    kind: FileKind
    states: tuple[tuple[str, str], ...]
    """The (operator, state) pairs in it."""
    key_groups: tuple[int, int]
    clipped: bool = False
    """Whether the file has rows outside of `key_groups`, which then count for nothing."""
    footer: tuple[int, str] | None = None
    """Length and checksum of the end of the file, in which an index of its row groups lies; None
    if it has only one."""

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(sorted({operator for operator, _ in self.states}))

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        if self.footer is None:
            del data["footer"]  # most files are small, and manifests shall be
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileInfo:
        lo, hi = data["key_groups"]
        footer = data.get("footer")
        return cls(
            path=data["path"],
            rows=data["rows"],
            bytes=data["bytes"],
            checksum=data["checksum"],
            kind=data["kind"],
            states=tuple((operator, state) for operator, state in data["states"]),
            key_groups=(lo, hi),
            clipped=data.get("clipped", False),
            footer=None if footer is None else (footer[0], footer[1]),
        )

    def clipped_to(self, key_groups: tuple[int, int]) -> FileInfo | None:
        """The part of the file in a range of key groups, None if there is none."""
        lo = max(self.key_groups[0], key_groups[0])
        hi = min(self.key_groups[1], key_groups[1])
        if lo > hi:
            return None
        if (lo, hi) == self.key_groups:
            return self
        return replace(self, key_groups=(lo, hi), clipped=True)

    def overlaps(self, key_groups: tuple[int, int], operators: Collection[str] | None) -> bool:
        """Whether any row may fall into the range and belong to one of the operators."""
        return (
            self.key_groups[0] <= key_groups[1]
            and key_groups[0] <= self.key_groups[1]
            and (operators is None or any(name in operators for name, _ in self.states))
        )
