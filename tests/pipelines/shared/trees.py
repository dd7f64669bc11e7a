"""Directories as values, so that a test can say that nothing in one has changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def tree(root: Path) -> dict[str, str]:
    """Every file and link below a directory, with a digest of what is in it."""
    found = {}
    for directory, directories, names in os.walk(root):
        for name in (*directories, *names):
            path = Path(directory, name)
            if path.is_symlink():
                found[str(path.relative_to(root))] = f"→ {os.readlink(path)}"
            elif path.is_file():
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(root))] = digest
    return found
