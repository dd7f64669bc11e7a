"""The last step in making a savepoint: its manifest, which lists all files beside it, signed."""

from __future__ import annotations

import os
from dataclasses import replace

from penstock.storage.contents import contents_of
from penstock.storage.crash_points import reach
from penstock.storage.filesystem import FileSystem
from penstock.storage.manifest import Manifest
from penstock.storage.snapshot import SAVEPOINT_MANIFEST
from penstock.storage.trust import sign


def seal(fs: FileSystem, root: str, manifest: Manifest, *, signed: bool = True) -> None:
    """Make a directory with all of a savepoint's files a savepoint.

    Not `signed`: it holds what somebody else wrote, and has to be trusted as theirs has.
    """
    data = replace(manifest, savepoint=True, contents=contents_of(fs, root)).to_bytes()
    if signed:
        sign(fs, root, data)
    reach("savepoint.before_manifest")
    fs.create_exclusive(os.path.join(root, SAVEPOINT_MANIFEST), data)
