"""The files of a savepoint, each with its size and digest: so that a copy is known to be whole, and
a signature over the list is one over all that is in them.

Only files that are listed are ever read. Links are refused, since they lead elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import CheckpointCorruptError
from penstock.storage.filesystem import FileSystem

_BLOCK = 1 << 20
# Digests are computed without Python's lock, and disks serve several readers.
_THREADS = 4

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Content:
    """What is in a file."""

    bytes: int
    sha256: str


def contents_of(fs: FileSystem, root: str) -> dict[str, Content]:
    """All files below a directory, by their paths relative to it."""
    paths = sorted(files_in(root))
    found = at_once(lambda path: content_of(fs, os.path.join(root, path)), paths)
    return dict(zip(paths, found, strict=True))


def files_in(root: str) -> Iterator[str]:
    """What is below a directory, relative to it; links as well, but not what they lead to."""
    for directory, directories, names in os.walk(root):
        links = [name for name in directories if os.path.islink(os.path.join(directory, name))]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(directory, name), root)


def content_of(fs: FileSystem, path: str) -> Content:
    digest, size = hashlib.sha256(), 0
    with fs.open_read(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Content(size, digest.hexdigest())


def check_sizes(root: str, contents: Mapping[str, Content]) -> None:
    """Refuse files that are missing, cut off, or no files."""
    checked: set[str] = {root}
    for path, content in contents.items():
        full = os.path.join(root, path)
        _check_no_link(os.path.dirname(full), checked)
        try:
            found = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            raise CheckpointCorruptError.of(full, "the file is missing") from None
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointCorruptError.of(full, "it is a link, or no file at all")
        if found.st_size != content.bytes:
            reason = f"it has {found.st_size} bytes, not {content.bytes}"
            raise CheckpointCorruptError.of(full, reason)


def _check_no_link(directory: str, checked: set[str]) -> None:
    """Refuse a directory, or one above it, that is in truth somewhere else."""
    if directory not in checked:
        _check_no_link(os.path.dirname(directory), checked)
        if os.path.islink(directory):
            raise CheckpointCorruptError.of(directory, "it is a link, which may lead anywhere")
        checked.add(directory)


def check_content(fs: FileSystem, path: str, content: Content, copy: str | None = None) -> None:
    """Refuse a file, or a copy of it, that is not as it was written."""
    found = content_of(fs, copy or path)
    if found != content:
        reason = f"its content has changed (SHA-256 {found.sha256}, not {content.sha256})"
        raise CheckpointCorruptError.of(path, reason)


def check_contents(fs: FileSystem, root: str, contents: Mapping[str, Content]) -> None:
    """Read all files and refuse those that are not as they were written."""
    check_sizes(root, contents)
    at_once(lambda c: check_content(fs, os.path.join(root, c[0]), c[1]), list(contents.items()))


def at_once(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Work on files, several at a time; the first error ends it."""
    with ThreadPoolExecutor(_THREADS, "penstock files") as pool:
        pending = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in pending]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
