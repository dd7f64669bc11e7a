"""Named places where a test can make the process die as if it had been killed.

``PENSTOCK_CRASH_AT=name`` or ``name:k`` ends the process at the (k-th) time it gets there.
``PENSTOCK_CRASH_ONCE=file`` is created before dying, and if it is there already nobody dies: so
the process that is started again survives.
"""

from __future__ import annotations

import os

AT = "PENSTOCK_CRASH_AT"
ONCE = "PENSTOCK_CRASH_ONCE"
EXIT_CODE = 37

_reached: dict[str, int] = {}


def reach(name: str) -> None:
    """Mark a place; does nothing unless a test asked for a crash here."""
    wanted = os.environ.get(AT)
    if wanted is not None:
        _maybe_die(name, wanted)


def _maybe_die(name: str, wanted: str) -> None:
    wanted_name, _, count = wanted.partition(":")
    if name != wanted_name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] == int(count or "1") and _first_to_die():
        # Not sys.exit: a killed process runs no finally blocks and flushes no buffers.
        os._exit(EXIT_CODE)


def _first_to_die() -> bool:
    once = os.environ.get(ONCE)
    if once is None:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True
