"""The programs over readings of sensors, with their goals and about how fast each contender is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers import contenders as who
from bench.peers import expected, inputs
from bench.peers.expected import Columns, Expected
from bench.peers.functions import (
    GAP_MILLIS,
    OUT_OF_ORDER_MILLIS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    exact_digest_of,
)
from bench.peers.inputs import Scale
from bench.peers.program import Program, Wanted

_ENGINES = "bench.peers.engines"


_FLINK = "bench.peers.flink"
_SLOW_SPARK = 40_000.0


def _sized(bare: float, penstock: float, bytewax: float, pyflink: float) -> dict[str, float]:
    """Rates of those that run nearly everything."""
    return {
        who.BARE: bare,
        who.PENSTOCK: penstock,
        who.BYTEWAX_1: bytewax,
        who.BYTEWAX_2: bytewax * 1.4,
        who.PYFLINK_THREAD: pyflink,
        who.PYFLINK_PROCESS: pyflink / 2,
    }


def _calls(bare: str) -> dict[str, str]:
    """Those of the contenders whose order says which program it is."""
    return {
        who.BARE: f"{_ENGINES}.{bare}",
        who.PENSTOCK: f"{_ENGINES}.penstock_job:run",
        who.PYFLINK_THREAD: f"{_ENGINES}.pyflink_job:run",
        who.PYFLINK_PROCESS: f"{_ENGINES}.pyflink_job:run",
        who.BYTEWAX_1: f"{_ENGINES}.bytewax_flow:run",
        who.BYTEWAX_2: f"{_ENGINES}.bytewax_flow:run",
    }


_FILES = {who.PENSTOCK_FILES: f"{_ENGINES}.penstock_files:run"}
_PATHWAY = {who.PATHWAY: f"{_ENGINES}.pathway_table:run"}


def _order(flink: str, weight_of: str, schemas: dict[str, str] | None = None) -> dict[str, Any]:
    name = flink.partition(":")[2]
    return {
        "schemas": schemas or {"readings": inputs.SCHEMA},
        "position_of": "bench.peers.functions:position_of",
        "weight_of": f"bench.peers.functions:{weight_of}",
        "flink": f"{_FLINK}.{flink}",
        "bytewax": f"{_ENGINES}.bytewax_programs:{name}",
        "pathway": f"{_ENGINES}.pathway_table:{name}",
    }


def _readings(pattern: str) -> Callable[[int, Scale], dict[str, Path]]:
    return lambda files, scale: {"readings": inputs.readings(pattern, files, scale)}


def _direct(compute: Callable[[Columns], Expected]) -> Callable[[dict[str, Path], int], Expected]:
    return lambda directories, files: compute(_columns(directories, "readings", files))


def _columns(directories: dict[str, Path], stream: str, files: int) -> Columns:
    return Columns(expected.table_of(directories[stream], files))


_STATELESS = Program(
    "map_filter",
    "map and filter, no state",
    _readings(inputs.STEADY),
    _direct(expected.map_filter),
    {**_calls("bare:map_filter"), **_FILES, **_PATHWAY},
    {
        **_sized(1_000_000, 600_000, 400_000, 40_000),
        who.PENSTOCK_FILES: 900_000,
        who.PATHWAY: 100_000,
    },
    _order("programs:map_filter", "amount_in"),
)

_KEYED_COUNT = Program(
    "keyed_count",
    "keyed count, an update per record",
    _readings(inputs.STEADY),
    _direct(expected.keyed_count),
    {
        **_calls("bare:keyed_count"),
        **_FILES,
        **_PATHWAY,
        who.TRANSFORM: f"{_ENGINES}.spark_state:run",
    },
    {
        **_sized(1_000_000, 550_000, 150_000, 10_000),
        who.PENSTOCK_FILES: 850_000,
        who.PATHWAY: 120_000,
        who.TRANSFORM: _SLOW_SPARK,
    },
    _order("programs:keyed_count", "amount_in"),
    (
        Wanted(who.PYFLINK_THREAD, 25),
        Wanted(who.PYFLINK_PROCESS, 50),
        Wanted(who.TRANSFORM, 8),
        Wanted(who.BYTEWAX_2, 2),
        Wanted(who.TRANSFORM, 8, who.PENSTOCK_FILES),
        Wanted(who.BYTEWAX_2, 2, who.PENSTOCK_FILES),
        Wanted(who.BARE, 1, who.PENSTOCK_FILES),
    ),
)

_TIMERS = Program(
    "timers",
    "keyed process with an event-time timer per key and five seconds",
    _readings(inputs.STEADY),
    _direct(expected.timers),
    _calls("bare_windows:timers"),
    _sized(600_000, 180_000, 100_000, 3_000),
    _order("connected:timers", "digest_of"),
    lag_millis=OUT_OF_ORDER_MILLIS,
)

_TUMBLING = Program(
    "tumbling",
    "tumbling windows of 5 s, count and average by a Python function",
    _readings(inputs.STEADY),
    _direct(lambda columns: expected.windows(columns, SIZE_MILLIS, SIZE_MILLIS)),
    {**_calls("bare_windows:tumbling"), **_FILES},
    {**_sized(500_000, 250_000, 50_000, 8_000), who.PENSTOCK_FILES: 400_000},
    _order("programs:tumbling", "digest_of"),
    (
        Wanted(who.PYFLINK_THREAD, 15),
        Wanted(who.PYFLINK_PROCESS, 15),
        Wanted(who.BYTEWAX_2, 2),
        Wanted(who.BARE, 0.4),
    ),
    back_millis=SIZE_MILLIS,
    lag_millis=SIZE_MILLIS + OUT_OF_ORDER_MILLIS,
)

_SLIDING = Program(
    "sliding",
    "sliding windows of 5 s every second, count and average by a Python function",
    _readings(inputs.STEADY),
    _direct(lambda columns: expected.windows(columns, SIZE_MILLIS, SLIDE_MILLIS)),
    _calls("bare_windows:sliding"),
    _sized(120_000, 120_000, 20_000, 3_000),
    _order("programs:sliding", "digest_of"),
    back_millis=SLIDE_MILLIS + OUT_OF_ORDER_MILLIS,
    lag_millis=SLIDE_MILLIS + OUT_OF_ORDER_MILLIS,
)

_SESSIONS = Program(
    "sessions",
    "session windows with a gap of 1.5 s, count and average by a Python function",
    _readings(inputs.BURSTS),
    _direct(lambda columns: expected.sessions(columns, GAP_MILLIS)),
    _calls("bare_windows:sessions"),
    _sized(400_000, 200_000, 40_000, 5_000),
    {
        **_order("programs:sessions", "digest_of"),
        # What PyFlink's `aggregate` gives for sessions that merge is wrong.
        "pyflink": f"{_FLINK}.programs:sessions_by_process",
    },
    back_millis=GAP_MILLIS + OUT_OF_ORDER_MILLIS,
    lag_millis=GAP_MILLIS + OUT_OF_ORDER_MILLIS,
)

_BUILT_IN = Program(
    "window_built_in",
    "tumbling windows of 5 s, count and average by built-in functions",
    _readings(inputs.STEADY),
    _direct(lambda columns: expected.windows(columns, SIZE_MILLIS, SIZE_MILLIS, exact_digest_of)),
    {
        who.PENSTOCK: f"{_ENGINES}.penstock_job:run",
        who.SPARK_SQL: f"{_ENGINES}.spark_windows:run",
        who.PENSTOCK_COLUMNAR: f"{_ENGINES}.penstock_columns:run",
        who.PENSTOCK_FILE_COLUMNS: f"{_ENGINES}.penstock_columns:by_tasks",
        **_FILES,
    },
    {
        who.PENSTOCK: 250_000,
        who.PENSTOCK_FILES: 400_000,
        who.SPARK_SQL: 190_000,
        who.PENSTOCK_COLUMNAR: 1_000_000,
        who.PENSTOCK_FILE_COLUMNS: 2_500_000,
    },
    _order("programs:tumbling", "exact_digest_of"),
    (
        Wanted(who.PENSTOCK, 5, of=who.PENSTOCK_COLUMNAR),
        Wanted(who.SPARK_SQL, 3, of=who.PENSTOCK_COLUMNAR),
        Wanted(who.PENSTOCK, 5, of=who.PENSTOCK_FILE_COLUMNS),
        Wanted(who.PENSTOCK_FILES, 5, of=who.PENSTOCK_FILE_COLUMNS),
        Wanted(who.SPARK_SQL, 3, of=who.PENSTOCK_FILE_COLUMNS),
    ),
    back_millis=SIZE_MILLIS,
    lag_millis=SIZE_MILLIS + OUT_OF_ORDER_MILLIS,
)

_INTERVAL_JOIN = Program(
    "interval_join",
    "interval join of two streams, half a second",
    lambda files, scale: {
        side: inputs.readings(inputs.STEADY, files, scale, seed)
        for seed, side in enumerate(("left", "right"))
    },
    lambda directories, files: expected.interval_join(
        _columns(directories, "left", files), _columns(directories, "right", files)
    ),
    _calls("bare_windows:interval_join"),
    _sized(300_000, 120_000, 60_000, 3_000),
    {
        **_order(
            "interval_join:interval_join",
            "amount_in",
            {"left": inputs.SCHEMA, "right": inputs.SCHEMA},
        ),
        "pyflink": f"{_FLINK}.connected:interval_join_by_hand",
    },
    rows_in=lambda files, scale: 2 * files * scale.rows_per_file,
)

_RULES = Program(
    "broadcast_rules",
    "readings against broadcast rules",
    lambda files, scale: {
        "readings": inputs.readings(inputs.STEADY, files, scale),
        "rules": inputs.rules(files, scale),
    },
    _direct(expected.broadcast_rules),
    _calls("bare:broadcast_rules"),
    _sized(600_000, 300_000, 100_000, 15_000),
    _order(
        "connected:broadcast_rules",
        "amount_in",
        {"readings": inputs.SCHEMA, "rules": inputs.RULES_SCHEMA},
    ),
)

_WORD_COUNT = Program(
    "word_count",
    "word count, ten words a line, an update per word (rows are words)",
    lambda files, scale: {"lines": inputs.lines(files, scale)},
    lambda directories, files: expected.word_count(expected.table_of(directories["lines"], files)),
    {**_calls("bare:word_count"), **_PATHWAY},
    {**_sized(1_200_000, 500_000, 150_000, 12_000), who.PATHWAY: 150_000},
    _order("programs:word_count", "amount_in", {"lines": inputs.LINES_SCHEMA}),
)

PROGRAMS = [
    _STATELESS,
    _KEYED_COUNT,
    _TIMERS,
    _TUMBLING,
    _SLIDING,
    _SESSIONS,
    _BUILT_IN,
    _INTERVAL_JOIN,
    _RULES,
    _WORD_COUNT,
]
