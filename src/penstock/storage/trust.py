"""Whether a snapshot was written by this user: it may hold pickled values, and opening those runs
code.

A savepoint is signed with a secret that only this user has, over its manifest, which holds the
digests of all files beside it. So it stays trusted when it is moved or copied, unless something in
it was changed. A checkpoint lies in a directory of the user's own, which is what counts for it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator

from penstock.common.user_directory import user_directory
from penstock.errors import CheckpointCorruptError, UntrustedSnapshotError
from penstock.storage.checkpoint_layout import CheckpointLayout, is_of_sources
from penstock.storage.contents import check_contents, files_in
from penstock.storage.filesystem import FileSystem
from penstock.storage.snapshot import SAVEPOINT_MANIFEST, Snapshot

SIGNATURE = "signature.json"
_SECRET = "secret"


def sign(fs: FileSystem, root: str, manifest: bytes) -> None:
    """Sign a savepoint by its manifest, which lists all files."""
    try:
        key = _secret(create=True)
    except OSError:
        return  # nowhere to keep a secret: then it is one that has to be asked for
    if key is not None:
        fs.write(os.path.join(root, SIGNATURE), json.dumps({"hmac": _hmac(key, manifest)}).encode())


def is_trusted(snapshot: Snapshot) -> bool:
    """Whether this user wrote it, and nobody has changed it since. Reads all of a savepoint."""
    if not _is_by_this_user(snapshot):
        return False
    if snapshot.is_savepoint:
        try:
            check_contents(snapshot.fs, snapshot.layout.root, snapshot.manifest.contents)
        except CheckpointCorruptError:
            return False
    return True


def check_author(snapshot: Snapshot, trusted: bool) -> None:
    """Refuse a snapshot of somebody else's, unless it is to be trusted.

    Of a savepoint this looks at its manifest and at which files there are. Whoever opens one of
    them has to compare it with its digest first.
    """
    if trusted or _is_by_this_user(snapshot):
        return
    if not snapshot.is_savepoint:
        check_owner(snapshot.layout, trusted=False)
    raise UntrustedSnapshotError.of(snapshot.path)


def check_owner(layout: CheckpointLayout, trusted: bool, fs_user: int | None = None) -> None:
    """Refuse a job's directory of which a driver that was not this user's wrote something.

    `fs_user` is who owns what this user writes there, if that is known to be somebody else. The
    files in `state` do not count: on some clusters tasks run as another user than the driver, and
    what belongs there is known by its digest. Nor do rows of batch frames, which tasks write too
    and nobody unpickles.
    """
    if trusted:
        return
    own = {os.getuid(), os.getuid() if fs_user is None else fs_user}
    for path in _written_by_drivers(layout):
        owner = _owner(path)
        if owner is not None and owner not in own:
            raise UntrustedSnapshotError.of_another_user(path, owner)


def _is_by_this_user(snapshot: Snapshot) -> bool:
    if snapshot.is_savepoint:
        return _has_signature(snapshot)
    return all(_owner(path) in (None, os.getuid()) for path in _all_in(snapshot.layout.root))


def _has_signature(snapshot: Snapshot) -> bool:
    root = snapshot.layout.root
    try:
        stated = str(json.loads(snapshot.fs.read(os.path.join(root, SIGNATURE)))["hmac"])
        key = _secret(create=False)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # As it was read: who could change it since would have it checked against something else.
    if key is None or not hmac.compare_digest(_hmac(key, snapshot.data), stated):
        return False
    return set(files_in(root)) <= {*snapshot.manifest.contents, SIGNATURE, SAVEPOINT_MANIFEST}


def _written_by_drivers(layout: CheckpointLayout) -> Iterator[str]:
    yield layout.root
    yield from _all_in(layout.epochs)
    for name in filter(is_of_sources, os.listdir(layout.root)):
        sources = os.path.join(layout.root, name)
        yield sources
        for vertex in os.listdir(sources):
            place = os.path.join(sources, vertex)
            yield from (place, os.path.join(place, "splits"))


def _owner(path: str) -> int | None:
    """None if it is gone: the job whose checkpoint it is may be running."""
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:
        return None


def _all_in(place: str) -> Iterator[str]:
    for directory, directories, names in os.walk(place):
        yield directory
        yield from (os.path.join(directory, name) for name in (*directories, *names))


def _hmac(key: bytes, manifest: bytes) -> str:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest()


def _secret(create: bool) -> bytes | None:
    path = os.path.join(user_directory(), _SECRET)
    try:
        with open(path, "rb") as file:
            return file.read() or None
    except FileNotFoundError:
        if not create:
            return None
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    made = secrets.token_bytes(32)
    temporary = f"{path}.{secrets.token_hex(6)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(made)
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        os.unlink(temporary)
    with open(path, "rb") as file:
        return file.read()
