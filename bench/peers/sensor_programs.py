"""The programs over readings of sensors, with their goals and about how fast each contender is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers import contenders as who
from bench.peers import expected, inputs
from bench.peers.expected import Columns, Expected
from bench.peers.inputs import Scale
from bench.peers.program import Program, Wanted

_ENGINES = "bench.peers.engines"


def _readings(pattern: str) -> Callable[[int, Scale], dict[str, Path]]:
    return lambda files, scale: {"readings": inputs.readings(pattern, files, scale)}


def _direct(compute: Callable[[Columns], Expected]) -> Callable[[dict[str, Path], int], Expected]:
    def computed(directories: dict[str, Path], files: int) -> Expected:
        return compute(Columns(expected.table_of(directories["readings"], files)))

    return computed


def calls_of(name: str) -> dict[str, str]:
    """Those of the contenders whose modules find a program by its name."""
    return {
        who.BARE: f"{_ENGINES}.bare:{name}",
        who.PENSTOCK: f"{_ENGINES}.penstock_job:run",
        who.PYFLINK_THREAD: f"{_ENGINES}.pyflink_job:run",
        who.PYFLINK_PROCESS: f"{_ENGINES}.pyflink_job:run",
        who.BYTEWAX_1: f"{_ENGINES}.bytewax_flow:run",
        who.BYTEWAX_2: f"{_ENGINES}.bytewax_flow:run",
    }


def _order(name: str, weight_of: str) -> dict[str, Any]:
    return {
        "schemas": {"readings": inputs.SCHEMA},
        "position_of": "bench.peers.functions:position_of",
        "weight_of": f"bench.peers.functions:{weight_of}",
        "flink": f"bench.peers.flink.programs:{name}",
        "bytewax": f"{_ENGINES}.bytewax_programs:{name}",
    }


PROGRAMS = [
    Program(
        "map_filter",
        "map and filter, no state",
        _readings(inputs.STEADY),
        _direct(expected.map_filter),
        calls_of("map_filter"),
        {
            who.BARE: 1_000_000,
            who.PENSTOCK: 600_000,
            who.BYTEWAX_1: 500_000,
            who.BYTEWAX_2: 800_000,
        },
        _order("map_filter", "amount_in"),
    ),
    Program(
        "keyed_count",
        "keyed count, an update per record",
        _readings(inputs.STEADY),
        _direct(expected.keyed_count),
        calls_of("keyed_count"),
        {who.BARE: 600_000, who.PENSTOCK: 400_000, who.BYTEWAX_1: 150_000, who.BYTEWAX_2: 200_000},
        _order("keyed_count", "amount_in"),
        (
            Wanted(who.PYFLINK_THREAD, 25),
            Wanted(who.PYFLINK_PROCESS, 50),
            Wanted(who.TRANSFORM, 8),
            Wanted(who.BYTEWAX_2, 2),
            Wanted(who.BARE, 1),
        ),
    ),
]
