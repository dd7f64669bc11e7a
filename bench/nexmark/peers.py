"""Queries 5, 7, 8 and 11 on Penstock and its peers, for `bench.peers`: inputs, answers, goals.

Every contender reads the same files: one directory for each stream, with the columns that the query
needs. Events come at as many a second as fit the framework's files, otherwise as everywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.nexmark.answers import OUT_OF_ORDER_MILLIS, digest_of
from bench.nexmark.direct import Events, answer
from bench.nexmark.generator import AUCTION, BID, PERSON, Settings, blocks
from bench.peers import contenders as who
from bench.peers.expected import Expected, table_of
from bench.peers.inputs import FILE_MILLIS, Scale, filled
from bench.peers.program import Program, Wanted

_HERE = "bench.nexmark"
_CONTENDERS = f"{_HERE}.contenders"
_ENGINES = "bench.peers.engines"
_FORMAT = 1
_MOST_FILES = 10_000

_KINDS = {"people": PERSON, "auctions": AUCTION, "bids": BID}
_TYPES = {"name": "string"}

Streams = dict[str, tuple[str, ...]]
"""The columns of each stream."""


def _inputs(streams: Streams) -> Callable[[int, Scale], dict[str, Path]]:
    def made(files: int, scale: Scale) -> dict[str, Path]:
        return {
            stream: _files(_KINDS[stream], columns, files, scale)
            for stream, columns in streams.items()
        }

    return made


def _files(kind: int, columns: tuple[str, ...], files: int, scale: Scale) -> Path:
    cache = Path(tempfile.gettempdir()) / "penstock-bench"
    name = f"nexmark-peers-{_FORMAT}-{scale.rows_per_file}-{kind}-{'-'.join(columns)}"
    parts = _Parts(kind, columns, scale)
    return filled(cache / name, files, parts.table)


class _Parts:
    """The content of files by their number; they are mostly asked for in a row."""

    def __init__(self, kind: int, columns: tuple[str, ...], scale: Scale) -> None:
        self._settings = Settings(
            events=_MOST_FILES * scale.rows_per_file,
            rate=scale.rows_per_file * 1000 // FILE_MILLIS,
            block=scale.rows_per_file,
        )
        self._chosen = {kind: columns}
        self._columns = list(columns)
        self._next = 0
        self._parts: Iterator[pa.Table] = iter(())

    def table(self, number: int) -> pa.Table:
        if number != self._next:
            # Whoever was late in the file before is in this one.
            begin = max(number - 1, 0)
            self._parts = blocks(self._settings, self._chosen, begin)
            for _ in range(begin, number):
                next(self._parts)
        elif number == 0:
            self._parts = blocks(self._settings, self._chosen)
        self._next = number + 1
        return next(self._parts).select(self._columns)


def _expected(query: str, streams: Streams) -> Callable[[dict[str, Path], int], Expected]:
    def computed(directories: dict[str, Path], files: int) -> Expected:
        tables = {stream: table_of(directories[stream], files) for stream in streams}
        answers = answer(query, Events(**tables))
        return Expected(len(answers), sum(map(digest_of, answers)))

    return computed


def _order(query: str, streams: Streams) -> dict[str, Any]:
    return {
        "schemas": {
            stream: ", ".join(f"{name} {_TYPES.get(name, 'long')}" for name in columns)
            for stream, columns in streams.items()
        },
        "position_of": f"{_HERE}.answers:{query}_position",
        "weight_of": f"{_HERE}.answers:digest_of",
        "flink": f"{_CONTENDERS}.penstock_programs:{query}",
        "pyflink": f"{_CONTENDERS}.flink_programs:{query}",
        "bytewax": f"{_CONTENDERS}.bytewax_programs:{query}",
        "spark": f"{_CONTENDERS}.spark_programs:{query}",
    }


def _calls(query: str) -> dict[str, str]:
    return {
        who.BARE: f"{_CONTENDERS}.bare:{query}",
        who.PENSTOCK: f"{_ENGINES}.penstock_job:run",
        who.PYFLINK_THREAD: f"{_CONTENDERS}.flink_programs:run",
        who.PYFLINK_PROCESS: f"{_CONTENDERS}.flink_programs:run",
        who.BYTEWAX_1: f"{_CONTENDERS}.bytewax_programs:run",
        who.BYTEWAX_2: f"{_CONTENDERS}.bytewax_programs:run",
        who.SPARK_SQL: f"{_CONTENDERS}.spark_programs:run",
    }


_PEERS = (who.PYFLINK_THREAD, who.PYFLINK_PROCESS, who.BYTEWAX_1, who.BYTEWAX_2)


def _sized(
    bare: float, penstock: float, bytewax_1: float, bytewax_2: float, pyflink: float, spark: float
) -> dict[str, float]:
    """Events a second. Of PyFlink more than it manages: windows last two files, and the clock runs
    from one answer to another."""
    return {
        who.BARE: bare,
        who.PENSTOCK: penstock,
        who.PENSTOCK_FILES: penstock * 1.3,
        who.PENSTOCK_COLUMNAR: penstock * 1.5,
        who.PENSTOCK_FILE_COLUMNS: penstock * 2,
        who.PYFLINK_THREAD: pyflink,
        who.PYFLINK_PROCESS: pyflink,
        who.BYTEWAX_1: bytewax_1,
        who.BYTEWAX_2: bytewax_2,
        who.SPARK_SQL: spark,
    }


_ABSENT = {
    who.TRANSFORM: "not written; Spark's own windows and joins are (spark-sql)",
    who.PATHWAY: "not written",
}


def _program(
    query: str,
    title: str,
    streams: Streams,
    rates: dict[str, float],
    tumbling: bool = False,
    columnar: bool = False,
    by_tasks: bool = False,
    columnar_by_tasks: bool = False,
    batch: int = 1,
) -> Program:
    """Answers come out when time is as far behind their window's end as is waited for late events.
    Windows of 10 s that do not slide end with every other file, those that slide in between.

    `columnar`: it is also written in Columns, and that is what is compared. `by_tasks`: it also
    runs with files read by tasks; `columnar_by_tasks`: for these it is written with built-in
    aggregates, too.
    """
    calls = _calls(query)
    ours: tuple[str, ...] = (who.PENSTOCK,)
    if by_tasks:
        calls = {**calls, who.PENSTOCK_FILES: f"{_ENGINES}.penstock_files:run"}
        ours = (*ours, who.PENSTOCK_FILES)
    if columnar_by_tasks:
        ours = (*ours, who.PENSTOCK_FILE_COLUMNS)
        calls[who.PENSTOCK_FILE_COLUMNS] = f"{_CONTENDERS}.penstock_columns:{query}_by_tasks"
    if columnar:
        calls = {**calls, who.PENSTOCK_COLUMNAR: f"{_CONTENDERS}.penstock_columns:{query}"}
        ours = (who.PENSTOCK_COLUMNAR,)
    return Program(
        f"nexmark_{query}",
        f"NEXMark {query}, {title}",
        _inputs(streams),
        _expected(query, streams),
        calls,
        rates,
        _order(query, streams),
        tuple(Wanted(peer, 1, of) for of in ours for peer in _PEERS),
        back_millis=0 if tumbling else OUT_OF_ORDER_MILLIS,
        lag_millis=OUT_OF_ORDER_MILLIS,
        absent=_ABSENT,
        batch=batch,
    )


PROGRAMS = [
    _program(
        "q5",
        "hot items: sliding windows",
        {"bids": ("auction", "date_time")},
        # A bid is in five windows, which PyFlink keeps one by one.
        _sized(2_500_000, 700_000, 900_000, 500_000, 7_500, 200_000),
        columnar=True,
    ),
    _program(
        "q7",
        "highest bid: tumbling windows",
        {"bids": ("auction", "bidder", "price", "date_time")},
        _sized(3_000_000, 800_000, 1_300_000, 1_200_000, 30_000, 1_000_000),
        tumbling=True,
        by_tasks=True,
        columnar_by_tasks=True,
    ),
    _program(
        "q8",
        "new users: window join",
        {"people": ("id", "name", "date_time"), "auctions": ("seller", "date_time")},
        # People and auctions are but a twelfth of the events, and nothing else is read.
        _sized(12_000_000, 3_000_000, 7_000_000, 4_000_000, 180_000, 800_000),
        batch=4,
        tumbling=True,
        by_tasks=True,
        columnar_by_tasks=True,
    ),
    _program(
        "q11",
        "user sessions: session windows",
        {"bids": ("bidder", "date_time")},
        # A bid merges windows.
        _sized(2_000_000, 700_000, 700_000, 300_000, 7_500, 700_000),
        by_tasks=True,
    ),
]
