"""Side inputs in tasks: the version that the order names, read once per process."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.datastream._records import RecordMaker
from penstock.datastream.side_input import SideInput, SideInputTable
from penstock.errors import SideInputError, StateError
from penstock.runtime.epoch import EpochOrder
from penstock.storage.filesystem import filesystem_for


class Content(NamedTuple):
    """What the file of a version holds: columns with their names, or rows as they are."""

    columns: tuple[str, ...] | None
    data: list[Any]

    def rows(self, kind: Any) -> list[Any]:
        if self.columns is None:
            return self.data
        return list(RecordMaker(self.columns, kind)(self.data))


class _Version:
    """The rows of one version, and where those of each key are."""

    def __init__(self, side: SideInput, rows: list[Any]) -> None:
        self.rows = rows
        self.by_key: dict[Any, list[Any]] = {}
        if side.key is not None:
            for row in rows:
                key = side.key(row)
                if key is not None:  # as in SQL, nothing is equal to it
                    self.by_key.setdefault(key, []).append(row)


# Shared by the subtasks of a process, and gone when none of them needs it any more.
_versions: weakref.WeakValueDictionary[str, _Version] = weakref.WeakValueDictionary()


def _version(side: SideInput, path: str) -> _Version:
    found = _versions.get(path)
    if found is None:
        fs, local = filesystem_for(path)
        content = Content(*pickle.loads(fs.read(local)))
        try:
            found = _Version(side, content.rows(side.record_type))
        except Exception as error:
            raise SideInputError.unusable(side.name, side.location, error) from error
        _versions[path] = found
    return found


class TaskSideInput(SideInputTable):
    """A side input as one operator in one subtask sees it, epoch after epoch."""

    def __init__(self, side: SideInput, order: Callable[[], EpochOrder]) -> None:
        self._side = side
        self._order = order
        self._seen: EpochOrder | None = None
        self._version: _Version

    def _current(self) -> _Version:
        order = self._order()
        if order is not self._seen:
            self._version = _version(self._side, order.side_inputs[self._side.name])
            self._seen = order
        return self._version

    @property
    def by_key(self) -> Mapping[Any, list[Any]]:
        """The rows of each key. Good for the epoch."""
        if self._side.key is None:
            raise StateError(
                f"side input {self._side.name!r} ({self._side.location}) has no key, so only its "
                "rows() can be had; give one: env.side_input(..., key=...)"
            )
        return self._current().by_key

    def get(self, key: Any) -> Any:
        rows = self.by_key.get(key)
        return None if rows is None else rows[0]

    def get_all(self, key: Any) -> Sequence[Any]:
        return self.by_key.get(key, ())

    def rows(self) -> Sequence[Any]:
        return self._current().rows
