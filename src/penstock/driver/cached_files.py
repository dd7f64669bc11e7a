"""Files that functions ask for by name, packed to be sent to workers."""

from __future__ import annotations

import os
import tarfile

from xxhash import xxh3_64

from penstock.driver.import_bundle import staging


def packed_file(path: str) -> tuple[str, str]:
    """A file or directory as an archive, and a name that is another whenever it has changed.

    It keeps its own name in the archive.
    """
    name = f"penstock-{xxh3_64(repr(sorted(_versions(path))).encode()).hexdigest()}"
    archive = os.path.join(staging(), f"{name}.tar")
    if not os.path.exists(archive):
        with tarfile.open(archive, "w", dereference=True) as out:
            out.add(path, os.path.basename(path))
    return archive, name


def _versions(path: str) -> list[tuple[str, int, int]]:
    paths = [path]
    for parent, _, files in os.walk(path):
        paths += [os.path.join(parent, file) for file in files]
    found = [(each, os.stat(each)) for each in paths]
    return [(each, status.st_mtime_ns, status.st_size) for each, status in found]
