"""Where Penstock keeps what belongs to a user rather than to a job. Makes nothing."""

from __future__ import annotations

import os

__all__ = ["user_state_directory"]


def user_state_directory() -> str:
    """`$PENSTOCK_STATE_DIR`, else where the desktop's convention puts a program's state."""
    if chosen := os.environ.get("PENSTOCK_STATE_DIR"):
        return os.path.abspath(chosen)
    # A path that is not absolute is to be ignored, as the convention has it.
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.local/state")
    return os.path.join(home, "penstock")
