"""The side inputs of a job: read when they are due, kept as files that epochs' orders name.

A version is chosen for each attempt at an epoch, so all of its tasks see the same, those that Spark
runs again included. Nothing of it is in the manifest: an epoch that is run anew, since it was not
committed, may be run with a newer table.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xxhash import xxh3_128_digest

from penstock.datastream.side_input import SideInput
from penstock.driver.side_tables import read_table
from penstock.errors import PenstockError, SideInputError, UnpicklableError
from penstock.runtime.codec import dump
from penstock.runtime.physical import PhysicalPlan
from penstock.storage.filesystem import FileSystem


@dataclass(frozen=True)
class SideInputStatus:
    """A side input as an epoch had it."""

    rows: int
    bytes: int
    read_at: int
    """Milliseconds since the epoch of clocks."""
    age: int
    """Milliseconds from there to the beginning of the epoch."""
    seconds: float
    """How long reading took."""


@dataclass(frozen=True)
class _Read:
    path: str
    digest: bytes
    bytes: int
    rows: int
    at: int
    seconds: float


class SideInputs:
    """Lives as long as the driver, and reads everything anew at its start."""

    def __init__(
        self, sides: Iterable[SideInput], fs: FileSystem, directory: str, most_rows: int
    ) -> None:
        self._sides = {side.name: side for side in sides}
        self._fs = fs
        self._directory = directory
        self._most_rows = most_rows
        self._read: dict[str, _Read] = {}
        self._outdated: list[str] = []
        self._versions = 0
        # Workers that live longer than the driver know files by their names.
        self._token = secrets.token_hex(4)
        if self._sides:
            fs.delete_tree(directory)

    def at(self, clock: int) -> dict[str, str]:
        """The file of each, by name, after those that are due have been read."""
        for side in self._sides.values():
            if self._is_due(side, clock):
                self._refresh(side, clock)
        return {name: read.path for name, read in self._read.items()}

    def committed(self) -> None:
        """An epoch was: what it did not use is not used any more."""
        while self._outdated:
            self._fs.delete(self._outdated.pop())

    def status(self, clock: int) -> Mapping[str, SideInputStatus]:
        return {
            name: SideInputStatus(
                read.rows, read.bytes, read.at, max(0, clock - read.at), read.seconds
            )
            for name, read in self._read.items()
        }

    def _is_due(self, side: SideInput, clock: int) -> bool:
        read = self._read.get(side.name)
        if read is None:
            return True
        # A clock that was put back says nothing about how old it is.
        age = clock - read.at
        return side.refresh_millis is not None and not 0 <= age < side.refresh_millis

    def _refresh(self, side: SideInput, clock: int) -> None:
        started = time.perf_counter()
        before = self._read.get(side.name)
        data, rows = _pickled(side, self._most_rows)
        digest = xxh3_128_digest(data)
        if before is not None and before.digest == digest:
            path = before.path  # workers have it already
        else:
            self._versions += 1
            path = os.path.join(self._directory, f"{self._token}-{self._versions}.table")
            self._fs.write(path, data)
            if before is not None:
                self._outdated.append(before.path)
        seconds = time.perf_counter() - started
        self._read[side.name] = _Read(path, digest, len(data), rows, clock, seconds)


def side_inputs_of(plan: PhysicalPlan) -> tuple[SideInput, ...]:
    """Those that its operators use."""
    operators = (operator for vertex in plan.vertices for operator in vertex.operators)
    found = {side.name: side for operator in operators for side in operator.side_inputs}
    return tuple(found.values())


def _pickled(side: SideInput, most: int) -> tuple[bytes, int]:
    try:
        content = read_table(side, most)
    except PenstockError:
        raise
    except (Exception, SystemExit) as error:
        raise SideInputError.unreadable(side.name, side.location, error) from error
    columns, data = content
    rows = len(data) if columns is None else len(data[0]) if data else 0
    try:
        return dump(tuple(content)), rows
    except Exception as error:
        what = f"a row of side input {side.name!r} ({side.location})"
        raise UnpicklableError.of(what, error) from error
