"""Bringing a store to an acknowledged version: apply what it lacks, or build it anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import StateError, StoreLostError
from penstock.storage.crash_points import reach
from penstock.storage.entries import state_id
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import FileSystem
from penstock.storage.store import Store
from penstock.storage.table_file import ReadMeter, read_columns

Chain = Sequence[tuple[str, Sequence[FileInfo]]]


@dataclass(frozen=True)
class CatchUp:
    rebuilt: bool
    rows: int
    bytes: int = field(default=0, compare=False)
    """What was read from files."""


def catch_up(
    store: Store,
    fs: FileSystem,
    root: str,
    chain: Chain,
    target: str,
    operators: Collection[str] | None,
    key_groups: tuple[int, int],
    *,
    covers: Mapping[str, Collection[str]] | None = None,
) -> CatchUp:
    """Bring the store to `target`; entries of other operators or key groups are left out.

    The chain is oldest first; each version comes with the files that lead to it from the one
    before, and the first with all that leads to it from nothing. `covers` names, for a version
    whose files are merged segments, the older versions from which they lead to it as well.
    """
    links = _up_to(chain, target)
    if store.version() == target:
        return CatchUp(rebuilt=False, rows=0)
    with store.exclusive():
        # Another process may have done the work while this one waited.
        start = _first_missing(links, store.version(), covers or {})
        rebuilt = start is None
        if start is None:
            store.reset()
            start = 0
        rows, meter = 0, ReadMeter()
        for version, files in links[start:]:
            changes = _Changes(fs, root, files, operators, key_groups, meter)
            # The names must be known before the data: a crash between leaves harmless extra names.
            store.register_states(_state_names(files))
            store.apply(changes, version)
            rows += changes.rows
        # Also takes the read snapshot while no one else can write: what the task reads from now
        # on is the target, whatever a late attempt of an older epoch does to the store.
        if store.version() != target:
            raise StoreLostError(
                f"the store did not keep version {target}; the task can be tried again"
            )
        return CatchUp(rebuilt, rows, meter.bytes)


def _up_to(chain: Chain, target: str) -> Chain:
    for i, (version, _) in enumerate(chain):
        if version == target:
            return chain[: i + 1]
    raise StateError(
        f"version {target} is not on the chain {[version for version, _ in chain]}; "
        "the manifest and the task disagree about the base"
    )


def _first_missing(
    links: Chain, present: str | None, covers: Mapping[str, Collection[str]]
) -> int | None:
    """The first link to apply to a store at this version, None if it must be rebuilt."""
    if present is None:
        return None
    for i, (version, _) in enumerate(links):
        if version == present:
            return i + 1
    for i, (version, _) in enumerate(links):
        # An image does not say what was removed, so it leads nowhere but from nothing.
        if present in covers.get(version, ()) and _only_segments(links[i][1]):
            return i
    return None


def _state_names(files: Sequence[FileInfo]) -> dict[bytes, tuple[str, str]]:
    return {state_id(*names): names for info in files for names in info.states}


def _only_segments(files: Sequence[FileInfo]) -> bool:
    return all(info.kind == "segment" for info in files)


@dataclass
class _Changes:
    """The changes of one version, read as they are iterated; a store may iterate twice."""

    fs: FileSystem
    root: str
    files: Sequence[FileInfo]
    operators: Collection[str] | None
    key_groups: tuple[int, int]
    meter: ReadMeter
    rows: int = field(default=0, init=False)
    _wanted: list[FileInfo] = field(init=False)

    def __post_init__(self) -> None:
        self._wanted = [f for f in self.files if f.overlaps(self.key_groups, self.operators)]

    def __iter__(self) -> Iterator[tuple[bytes, bytes | None]]:
        self.rows = 0
        for info in self._wanted:
            yield from self._file(info)
        reach("store.catch_up")  # the store has taken all and confirmed nothing

    def _file(self, info: FileInfo) -> Iterator[tuple[bytes, bytes | None]]:
        all_operators = self.operators is None or set(self.operators).issuperset(info.operators)
        for columns in read_columns(self.fs, self.root, info, self.key_groups, self.meter):
            changes = zip(columns.packed_keys(), columns.value, strict=True)
            if all_operators:
                self.rows += len(columns.key)
                yield from changes
                continue
            for operator, change in zip(columns.operator, changes, strict=True):
                if self.operators is None or operator in self.operators:
                    self.rows += 1
                    yield change
