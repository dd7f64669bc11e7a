"""Part files on their way: written in a hidden directory by tasks, given their names by commits.

An attempt at an epoch writes files of its own, so it disturbs no other, whoever of them is still
alive; what was written by those that failed is deleted with the next commit.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.common.digests import text_digest
from penstock.datastream.connectors.base import InitContext
from penstock.errors import FileAccessError

_log = logging.getLogger(__name__)

_HIDDEN = ".penstock-"
# Epoch, attempt, number: of the attempts of an epoch that has been committed, all but one failed.
_STAGED = re.compile(r"(\d+)-[0-9a-f]+-\d+")


class StagedPart(NamedTuple):
    """A whole part file that waits for its commit. All paths are below the sink's directory."""

    staging: str
    name: str
    final: str


def staging_of(context: InitContext) -> str:
    """The hidden directory of one sink of one job."""
    return _HIDDEN + text_digest(f"{context.job_directory}|{context.operator_uid}")[:16]


@dataclass
class OpenPart:
    """A part file that is being written. Holds no open file: there may be many."""

    path: str
    number: int
    written: int = 0
    held: list[bytes] = field(default_factory=list)
    held_bytes: int = 0

    def flush(self, durably: bool = False) -> None:
        try:
            with open(self.path, "ab") as file:
                file.write(b"".join(self.held))
                if durably:
                    os.fsync(file.fileno())
        except OSError as error:
            raise FileAccessError.unwritable(self.path, error) from error
        self.written += self.held_bytes
        self.held_bytes = 0
        self.held.clear()

    def delete(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def publish(base: str, parts: list[StagedPart]) -> None:
    """Give whole parts their names. Those that have them already are left alone."""
    directories = set()
    for part in parts:
        staged = os.path.join(base, part.staging, part.name)
        final = os.path.join(base, part.final)
        directories.add(os.path.dirname(final))
        os.makedirs(os.path.dirname(final), exist_ok=True)
        try:
            os.rename(staged, final)
        except FileNotFoundError:
            if os.path.exists(final):
                continue  # this is not the first time
            if not os.path.isdir(os.path.dirname(staged)):
                raise FileAccessError.output_not_found(staged) from None
            _log.warning("%s was committed before, and is not there any more", final)
    for directory in directories:
        sync_directory(directory)


def delete_failed(directory: str, epoch: int) -> None:
    """What attempts have left that were not accepted, at this epoch or one before."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            staged = _STAGED.fullmatch(name)
            if staged is not None and int(staged[1]) <= epoch:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(directory, name))


def sync_directory(path: str) -> None:
    """Make names durable, not only contents."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
