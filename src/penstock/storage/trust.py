"""Whether a snapshot was written by this user: it may hold pickled values, and opening those runs
code.

A savepoint is signed: with a secret that only this user has, over its manifest and the digests of
all files beside it. So it stays trusted when it is moved or copied, unless something in it was
changed. A checkpoint lies in a directory of the user's own, which is what counts for it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator

from penstock.common.user_directory import user_directory
from penstock.errors import UntrustedSnapshotError
from penstock.storage.filesystem import FileSystem
from penstock.storage.snapshot import SAVEPOINT_MANIFEST, Snapshot

SIGNATURE = "signature.json"
_SECRET = "secret"
_BLOCK = 1 << 20


def sign(fs: FileSystem, root: str, manifest: bytes) -> None:
    """Sign a savepoint whose files are all there, but for its manifest."""
    try:
        key = _secret(create=True)
    except OSError:
        return  # nowhere to keep a secret: then it is one that has to be asked for
    if key is None:
        return
    digests = {name: _digest(fs, os.path.join(root, name)) for name in _files(root)}
    signed = {"files": digests, "hmac": _hmac(key, manifest, digests)}
    fs.write(os.path.join(root, SIGNATURE), json.dumps(signed).encode())


def is_trusted(snapshot: Snapshot) -> bool:
    """Whether this user wrote it."""
    if snapshot.is_savepoint:
        return _has_signature(snapshot.fs, snapshot.layout.root)
    return _is_own(snapshot.layout.root)


def check_trust(snapshot: Snapshot, trusted: bool) -> None:
    """Refuse a snapshot of somebody else's, unless it is to be trusted."""
    if not trusted and not is_trusted(snapshot):
        raise UntrustedSnapshotError.of(snapshot.path)


def _has_signature(fs: FileSystem, root: str) -> bool:
    try:
        signed = json.loads(fs.read(os.path.join(root, SIGNATURE)))
        digests, stated = dict(signed["files"]), str(signed["hmac"])
        manifest = fs.read(os.path.join(root, SAVEPOINT_MANIFEST))
        key = _secret(create=False)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if key is None or not hmac.compare_digest(_hmac(key, manifest, digests), stated):
        return False
    return digests == {name: _digest(fs, os.path.join(root, name)) for name in _files(root)}


def _files(root: str) -> Iterator[str]:
    """All that is in a savepoint, relative to it, but for what is signed or signs."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), root)
            if path not in (SIGNATURE, SAVEPOINT_MANIFEST):
                yield path


def _is_own(root: str) -> bool:
    try:
        owners = {os.stat(root).st_uid}
        for directory, directories, names in os.walk(root):
            owners.update(
                os.lstat(os.path.join(directory, n)).st_uid for n in (*directories, *names)
            )
    except FileNotFoundError:
        return False
    return owners == {os.getuid()}


def _hmac(key: bytes, manifest: bytes, digests: dict[str, str]) -> str:
    signed = manifest + b"\0" + json.dumps(digests, sort_keys=True).encode()
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _digest(fs: FileSystem, path: str) -> str:
    digest = hashlib.sha256()
    with fs.open_read(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


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
