"""An open LMDB environment: one per path and process, shared by the stores that use it.

LMDB forbids opening a file twice in a process, and an environment must not be carried through a
fork. So there is a registry by path and process id; what a fork left in it is never touched, not
even closed, since closing would clear the parent's entries in LMDB's table of readers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import lmdb

from penstock.errors import StateError
from penstock.storage.file_lock import FileLock

# Address space, not memory or disk: the file is only as long as what was written. Large enough
# that growing, which ends all of the process's reads, is rare.
INITIAL_MAP_SIZE = 64 << 30

_MAX_READERS = 1024

# What LMDB says when the file is not what it wrote. The remedy is always to delete and rebuild.
DAMAGE = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _read_boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None


class Environment:
    _open: ClassVar[dict[tuple[str, int], Environment]] = {}

    def __init__(self, path: str, env: lmdb.Environment) -> None:
        self._path = path
        self._env = env
        self._data = os.path.join(path, "data.mdb")
        self._inode = os.stat(self._data).st_ino
        self._users = 0
        self._closed = False

    @classmethod
    def of(cls, path: str, map_size: int, lock: FileLock) -> Environment:
        key = (path, os.getpid())
        environment = cls._open.get(key)
        if environment is None or not environment.is_current():
            environment = cls(path, _open_checked(path, map_size, lock))
            cls._open[key] = environment
        environment._users += 1
        return environment

    def is_current(self) -> bool:
        """Whether the path still leads to this environment."""
        try:
            return not self._closed and os.stat(self._data).st_ino == self._inode
        except FileNotFoundError:
            return False

    def let_go(self) -> None:
        self._users -= 1
        if self._users <= 0:
            self._close()

    def destroy(self) -> None:
        """Delete the files; the caller holds the path's lock."""
        self._close()
        _delete_files(self._path)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            key = (self._path, os.getpid())
            if self._open.get(key) is self:
                del self._open[key]
            self._env.close()

    def begin_read(self) -> lmdb.Transaction[bytes]:
        try:
            return self._env.begin()
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
        except lmdb.ReadersFullError:
            self._env.reader_check()
        return self._env.begin()

    def begin_write(self) -> lmdb.Transaction[bytes]:
        try:
            return self._env.begin(write=True)
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
            return self._env.begin(write=True)

    def clear(self) -> None:
        with self.begin_write() as txn:
            txn.drop(self._env.open_db(None, txn=txn), delete=False)

    def make_room(self) -> None:
        """Grow ahead of need, so that a transaction hardly ever meets a full map."""
        info = self._env.info()
        if 2 * info["last_pgno"] * self._env.stat()["psize"] > info["map_size"]:
            self.grow()

    def grow(self) -> None:
        self._env.set_mapsize(2 * self._env.info()["map_size"])


def _open_checked(path: str, map_size: int, lock: FileLock) -> lmdb.Environment:
    boot_id = _read_boot_id()
    if boot_id is not None and not _written_under(path, boot_id):
        with lock.held():
            # Another process may have been first, and is perhaps using the new one already.
            if not _written_under(path, boot_id):
                _delete_files(path)
                Path(path, "boot-id").write_text(boot_id)
    try:
        return _open_whole(path, map_size, sync=boot_id is None)
    except DAMAGE:
        with lock.held():
            try:
                return _open_whole(path, map_size, sync=boot_id is None)
            except DAMAGE:
                _delete_files(path)
                return _open_whole(path, map_size, sync=boot_id is None)


def _open_whole(path: str, map_size: int, *, sync: bool) -> lmdb.Environment:
    try:
        env = lmdb.open(
            path,
            map_size=map_size,
            # A full disk is then an exception and not SIGBUS.
            writemap=False,
            sync=sync,
            metasync=sync,
            max_readers=_MAX_READERS,
            # Reading is mostly of single keys; what is hot stays in the cache anyway.
            readahead=False,
            max_spare_txns=2,
        )
    except DAMAGE:
        raise
    except lmdb.Error as error:
        raise StateError(
            f"cannot open the store at {path}: {error}; if it says 'already open', the store was "
            "opened before this process was forked: open it after"
        ) from error
    # Processes that were killed while reading would keep old pages alive.
    env.reader_check()
    info = env.info()
    # Touching a page beyond the end of a truncated file would kill the process with SIGBUS.
    expected = (info["last_pgno"] + 1) * env.stat()["psize"]
    if info["last_txnid"] and os.stat(os.path.join(path, "data.mdb")).st_size < expected:
        env.close()
        raise lmdb.CorruptedError(f"{path}/data.mdb is shorter than {expected} bytes")
    return env


def _written_under(path: str, boot_id: str) -> bool:
    try:
        return Path(path, "boot-id").read_text() == boot_id
    except OSError:
        return False


def _delete_files(path: str) -> None:
    for name in ("data.mdb", "lock.mdb"):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))
