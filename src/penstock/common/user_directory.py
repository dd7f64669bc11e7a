"""Where this user's Penstock keeps what outlives a job: the registry of running ones, a secret."""

from __future__ import annotations

import os

VARIABLE = "PENSTOCK_STATE_DIR"


def user_directory() -> str:
    """The directory, which need not exist yet."""
    if chosen := os.environ.get(VARIABLE):
        return os.path.abspath(chosen)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(home, "penstock")
