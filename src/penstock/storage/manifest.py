"""The manifest of an epoch: everything that is needed to go on from it. Its appearance commits.

Pure data; how manifests are written and found is in `checkpoint_log`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xxhash import xxh3_128_hexdigest

from penstock.errors import CheckpointCorruptError, CheckpointFormatError
from penstock.storage.checkpoint_layout import is_inside, is_plain_name
from penstock.storage.contents import Content
from penstock.storage.file_info import FileInfo

FORMAT_VERSION = 3


@dataclass(frozen=True)
class ChainLink:
    """A version of a subtask's state, and the files that lead to it from the link before.

    `covers` lists older versions from which the files lead to this one as well: those whose
    segments were merged into them.
    """

    version: str
    files: tuple[FileInfo, ...]
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubtaskState:
    """One subtask: the attempt that made this epoch, and its state's history since an image."""

    token: str
    chain: tuple[ChainLink, ...] = ()
    watermark: int | None = None
    operators: Mapping[str, str] = field(default_factory=dict)
    """Operator uid → what it keeps beside keyed state, packed, in base64."""

    @property
    def version(self) -> str | None:
        return self.chain[-1].version if self.chain else None

    def with_segment(self, token: str, epoch: int, files: tuple[FileInfo, ...]) -> SubtaskState:
        if not files:
            return replace(self, token=token)
        return replace(self, token=token, chain=(*self.chain, ChainLink(f"{epoch}-{token}", files)))


@dataclass(frozen=True)
class VertexState:
    """The subtasks of one vertex, and which operators' state they hold."""

    operators: tuple[str, ...]
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskState, ...]


@dataclass(frozen=True)
class SourceState:
    """How far a source has been read: split id → (pickled position in base64, finished)."""

    positions: Mapping[str, tuple[str, bool]]


@dataclass(frozen=True)
class LoopState:
    """The records that enter a loop in the next epoch. A file's key groups are no keys' here: they
    deal its rows out to the subtasks of the head, however many there are."""

    records: int
    files: tuple[FileInfo, ...]


@dataclass(frozen=True)
class SparkSourceName:
    """The streaming sources within one of Spark's frames, in the order of Spark's offsets."""

    uid: str
    names: tuple[str, ...]
    """As Spark calls them: given names, or their numbers if they have none."""


@dataclass(frozen=True)
class Origin:
    """The savepoint or checkpoint that a job began from."""

    snapshot: str
    """Digest of its manifest."""
    path: str
    """Where it was then."""
    fork: str
    """Names this beginning: a job's directory may have seen several."""


@dataclass(frozen=True)
class Manifest:
    """One epoch. `batch` and `offsets` tell which of Spark's batches it was, if any."""

    job_id: str
    job_name: str
    epoch: int
    base: int | None
    batch: int | None
    offsets: str | None
    created: int
    vertices: Mapping[str, VertexState]
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    rows_read: Mapping[str, int] = field(default_factory=dict)
    """Rows that each Spark source has given so far."""
    state_types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    committables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    listeners: tuple[str, ...] = ()
    """Uids of the operators whose functions want to hear what becomes of an epoch."""
    loops: Mapping[str, LoopState] = field(default_factory=dict)
    """Uid of a loop's head → what is in the loop; absent if that is nothing."""
    spark_sources: tuple[SparkSourceName, ...] = ()
    """What the lines of `offsets` are for."""
    origin: Origin | None = None
    final: bool = False
    drained: bool = False
    """Of a final epoch: it is so for the savepoint that follows, not because the input ended."""
    savepoint: bool = False
    written_by: Mapping[str, str] = field(default_factory=dict)
    """Of a savepoint: program → the version that made it, for who finds it years later."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """Of a savepoint: every file beside its manifest, by its path in the savepoint."""
    format: int = FORMAT_VERSION

    def files(self) -> Collection[FileInfo]:
        return [
            file
            for vertex in self.vertices.values()
            for subtask in vertex.subtasks
            for link in subtask.chain
            for file in link.files
        ] + [file for loop in self.loops.values() for file in loop.files]

    def reopened(self) -> Manifest:
        """The same for who goes on, though event time had come to its end."""
        vertices = {
            uid: replace(
                vertex, subtasks=tuple(replace(s, watermark=None) for s in vertex.subtasks)
            )
            for uid, vertex in self.vertices.items()
        }
        return replace(self, vertices=vertices, final=False, drained=False)

    def to_bytes(self) -> bytes:
        plain = _plain(self)
        if self.savepoint:
            # Nobody else has a digest of it, unlike of all other files of a savepoint.
            plain["checksum"] = _checksum(plain)
        return _canonical(plain)

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Manifest:
        try:
            raw = json.loads(data)
            version = raw["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointCorruptError.of(path, f"it is not a manifest ({error})") from None
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise CheckpointFormatError.newer(path, version, FORMAT_VERSION)
        if version < FORMAT_VERSION:
            raise CheckpointFormatError.older(path, version, FORMAT_VERSION)
        if raw.get("savepoint") and raw.pop("checksum", None) != _checksum(raw):
            raise CheckpointCorruptError.of(path, "its checksum is not that of its content")
        try:
            manifest = cls(
                **{
                    **raw,
                    "vertices": {k: _vertex(v) for k, v in raw["vertices"].items()},
                    "sources": {k: _source(v) for k, v in raw["sources"].items()},
                    "listeners": tuple(raw.get("listeners", ())),
                    "loops": {k: _loop(v) for k, v in raw.get("loops", {}).items()},
                    "spark_sources": tuple(map(_spark_source, raw.get("spark_sources", ()))),
                    "origin": Origin(**raw["origin"]) if raw.get("origin") else None,
                    "contents": {k: Content(**v) for k, v in raw.get("contents", {}).items()},
                }
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointCorruptError.of(path, f"a part is missing ({error!r})") from None
        _check_names(path, manifest)
        return manifest


def _check_names(path: str, manifest: Manifest) -> None:
    """Names become paths, and somebody else may have written them."""
    paths = [*(file.path for file in manifest.files()), *manifest.contents]
    names = [*manifest.vertices, *(n for source in manifest.spark_sources for n in source.names)]
    if manifest.origin is not None:
        names.append(manifest.origin.fork)
    outside = [p for p in paths if not is_inside(p)] + [n for n in names if not is_plain_name(n)]
    if outside:
        reason = f"it names {outside[0]!r}, which may be a path out of its directory"
        raise CheckpointCorruptError.of(path, reason)


def _canonical(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, separators=(",", ":"), sort_keys=True).encode()


def _checksum(plain: Mapping[str, Any]) -> str:
    return str(xxh3_128_hexdigest(_canonical(plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, FileInfo):
        return value.to_json()
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _vertex(raw: dict[str, Any]) -> VertexState:
    return VertexState(
        tuple(raw["operators"]),
        raw["parallelism"],
        raw["max_parallelism"],
        tuple(_subtask(subtask) for subtask in raw["subtasks"]),
    )


def _subtask(raw: dict[str, Any]) -> SubtaskState:
    links = tuple(
        ChainLink(
            link["version"],
            tuple(FileInfo.from_json(file) for file in link["files"]),
            tuple(link["covers"]),
        )
        for link in raw["chain"]
    )
    return SubtaskState(raw["token"], links, raw.get("watermark"), raw.get("operators", {}))


def _source(raw: dict[str, Any]) -> SourceState:
    positions = {split: (text, done) for split, (text, done) in raw["positions"].items()}
    return SourceState(positions)


def _loop(raw: dict[str, Any]) -> LoopState:
    return LoopState(raw["records"], tuple(FileInfo.from_json(file) for file in raw["files"]))


def _spark_source(raw: dict[str, Any]) -> SparkSourceName:
    return SparkSourceName(raw["uid"], tuple(raw["names"]))
