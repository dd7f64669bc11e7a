"""All programs, those of other benchmarks included."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from bench.peers.program import Program

_MODULES = ("bench.peers.sensor_programs", "bench.nexmark.peers")
"""Each has a list `PROGRAMS`."""


def all_programs() -> dict[str, Program]:
    found: dict[str, Program] = {}
    for module in _MODULES:
        if _is_there(module):
            found.update((program.name, program) for program in import_module(module).PROGRAMS)
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package
        return False
