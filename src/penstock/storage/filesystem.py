"""The file system under a checkpoint directory, as a protocol, and the local one.

The two ways to write are what the checkpoint protocol leans on: `write` replaces a file as a
whole, `create_exclusive` makes one that was not there, and exactly one of several writers wins.
Both are durable when they return.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol

from penstock.common.local_paths import local_path
from penstock.errors import CheckpointUnwritableError

_UNWRITABLE = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.EFBIG,
        errno.EIO,
        errno.ENOTDIR,
    )
)
# What a file system without hard links says (FAT, some network and FUSE mounts).
_NO_LINKS = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK))
# The names that `_temporary` gives; Spark has temporary files too, with others.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")


class FileSystem(Protocol):
    def read(self, path: str) -> bytes: ...

    def open_read(self, path: str) -> BinaryIO:
        """A seekable stream, for files too large to hold."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write or replace; readers see the old content or the new, never a part."""
        ...

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Make a file that appears whole; FileExistsError if it is there already."""
        ...

    def copy(self, path: str, new_path: str) -> None:
        """Copy a file; the copy appears whole."""
        ...

    def copy_tree(self, path: str, new_path: str) -> None:
        """Copy the files in a directory and those below; it need not exist."""
        ...

    def link(
        self, path: str, new_path: str, check: Callable[[str], None] = lambda path: None
    ) -> None:
        """Have an immutable file under another name too: the same file, if that can be and nobody
        else may change it.

        `check` is given the file in a place of its own, and may refuse it, before it gets its name.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int:
        """Of a file, in bytes; FileNotFoundError if there is none."""
        ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted; none if it does not exist."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; it need not exist."""
        ...

    def delete_tree(self, path: str) -> None: ...

    def delete_temporaries(self, path: str) -> None:
        """Delete what writers that were killed have left in a directory and those below.

        A writer that is alive fails by it.
        """
        ...

    def owner_of_new_files(self, path: str) -> int:
        """Whom what this process writes into a directory belongs to: a mount may say otherwise."""
        ...

    def rename(self, path: str, new_path: str) -> None:
        """Give a directory another name, in one step."""
        ...


def filesystem_for(uri: str) -> tuple[FileSystem, str]:
    """The file system that a path or URI names, and the path in it."""
    return LocalFileSystem(), local_path(uri, "checkpoint directory")


class LocalFileSystem:
    """A directory that this machine mounts."""

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def open_read(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def write(self, path: str, data: bytes) -> None:
        with _writable(path), _temporary(path, data) as temporary:
            os.replace(temporary, path)
            _sync_directory(path)

    def create_exclusive(self, path: str, data: bytes) -> None:
        with _writable(path), _temporary(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                # NFS repeats a request whose answer was lost, and the repetition finds the link
                # that the first has made. The count of links tells whose it is.
                if os.stat(temporary).st_nlink != 2:
                    raise
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                _rename_if_absent(temporary, path)
            _sync_directory(path)

    def copy(self, path: str, new_path: str) -> None:
        directory, name = os.path.split(new_path)
        temporary = os.path.join(directory, f".{name}.{secrets.token_hex(6)}.tmp")
        with _writable(new_path):
            os.makedirs(directory, exist_ok=True)
            try:
                _copy_durably(path, temporary)
                os.replace(temporary, new_path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            _sync_directory(new_path)

    def copy_tree(self, path: str, new_path: str) -> None:
        for directory, _, names in os.walk(path):
            place = os.path.join(new_path, os.path.relpath(directory, path))
            for name in names:
                if not _TEMPORARY.fullmatch(name):
                    self.copy(os.path.join(directory, name), os.path.normpath(f"{place}/{name}"))

    def link(
        self, path: str, new_path: str, check: Callable[[str], None] = lambda path: None
    ) -> None:
        directory, name = os.path.split(new_path)
        temporary = os.path.join(directory, f".{name}.{secrets.token_hex(6)}.tmp")
        try:
            with _writable(new_path):
                os.makedirs(directory, exist_ok=True)
                if not _linked(path, temporary):
                    _copy_durably(path, temporary)
            check(temporary)
            with _writable(new_path):
                os.replace(temporary, new_path)
                _sync_directory(new_path)
        finally:
            # There still if both are the same file already: then a rename does nothing.
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, path: str) -> None:
        with _writable(path), suppress(FileNotFoundError):
            os.unlink(path)

    def owner_of_new_files(self, path: str) -> int:
        probe = os.path.join(path, "probe")
        with _writable(probe), _temporary(probe, b"") as temporary:
            return os.stat(temporary).st_uid

    def rename(self, path: str, new_path: str) -> None:
        with _writable(new_path):
            os.rename(path, new_path)

    def delete_tree(self, path: str) -> None:
        with _writable(path), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def delete_temporaries(self, path: str) -> None:
        for directory, _, names in os.walk(path):
            for name in names:
                if _TEMPORARY.fullmatch(name):
                    self.delete(os.path.join(directory, name))


@contextmanager
def _writable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise CheckpointUnwritableError.at(path, error) from error


@contextmanager
def _temporary(path: str, data: bytes) -> Iterator[str]:
    """A durable file beside `path` with the data, gone at the end unless it was renamed."""
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_durably(temporary, data)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _write_durably(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        fd = os.open(path, flags, 0o644)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, flags, 0o644)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _copy_durably(path: str, new_path: str) -> None:
    shutil.copyfile(path, new_path)
    with open(new_path, "rb") as file:
        os.fsync(file.fileno())


def _linked(path: str, new_path: str) -> bool:
    """Link a file, if it is one of ours alone: what others can write, they could change later."""
    found = os.stat(path)
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    try:
        os.link(path, new_path)
    except OSError as error:
        if error.errno not in _NO_LINKS | {errno.EXDEV}:
            raise
        return False
    return True


def _rename_if_absent(temporary: str, path: str) -> None:
    """Create-if-absent without hard links: claim a marker, which O_EXCL makes unique, then rename.

    A claimant that dies between the two leaves the marker; it stays claimed until the marker is
    removed by hand, which is safe, unlike two winners.
    """
    marker = path + ".claim"
    if os.path.exists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    try:
        if os.path.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.rename(temporary, path)
    finally:
        os.unlink(marker)


def _sync_directory(path: str) -> None:
    """Make the name durable, not only the content."""
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
