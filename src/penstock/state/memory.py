"""How much memory this process has."""

from __future__ import annotations

import resource
import sys

_PAGE = resource.getpagesize()
# Of macOS bytes, elsewhere kibibytes.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def memory_in_use() -> int:
    """Bytes that are the process's own: pages of files, of stores above all, are not counted.

    Where that is not known, the most it ever had.
    """
    try:
        with open("/proc/self/statm") as statm:
            _, resident, shared = map(int, statm.read().split()[:3])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT
    return (resident - shared) * _PAGE
