"""Pathway: tables that are updated, as a group of processes.

It merges updates that come together, and its reducers are its own, in Rust; the functions before
them are the programs' own. So a key's last answer is checked rather than one for each record.
Pathway reads a directory for ever: this process ends the others when all rows have been answered.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import pathway as pw

from bench.peers.engines.orders import called, paths_in
from bench.peers.functions import is_warm, prepared, words_of

_COMMIT_MILLIS = 200
_BACKLOG_ROWS = 100_000
"""Else all files are read before the first answer is out, and the clock would miss it."""
_LOOK_SECONDS = 0.2
_TYPES = {"string": str, "long": int, "double": float}


def run(params: dict[str, Any]) -> dict[str, Any]:
    for stream in params["inputs"]:
        _with_header(params, stream)
    context = multiprocessing.get_context("spawn")
    port = _first_port(params["processes"])
    others = [
        context.Process(target=_work, args=(params, number, port), daemon=True)
        for number in range(params["processes"])
    ]
    for other in others:
        other.start()
    result = Path(params["scratch"]) / "answers.json"
    while not result.exists():
        time.sleep(_LOOK_SECONDS)
        assert all(other.is_alive() for other in others), "a process of Pathway's ended early"
    for other in others:
        other.kill()
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _work(params: dict[str, Any], number: int, port: int) -> None:
    os.environ |= {
        "PATHWAY_PROCESSES": str(params["processes"]),
        "PATHWAY_PROCESS_ID": str(number),
        "PATHWAY_THREADS": "1",
        "PATHWAY_FIRST_PORT": str(port),
    }
    # Settings are read when the package is imported: this process has been started anew for that.
    rows = {stream: _table(params, stream) for stream in params["inputs"]}
    answers = called(params["pathway"])(rows)
    pw.io.subscribe(answers, _Answers(params).changed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)


def map_filter(rows: dict[str, pw.Table]) -> pw.Table:
    made = _mapped(rows["readings"])
    warm = made.filter(pw.apply_with_type(is_warm, bool, made.row))
    return _fields_of(warm).select(pw.this.ts, number=1, amount=pw.this.temp)


def keyed_count(rows: dict[str, pw.Table]) -> pw.Table:
    table = _prepared(rows["readings"])
    return table.groupby(table.id_).reduce(
        table.id_,
        ts=pw.reducers.max(table.ts),
        number=pw.reducers.count(),
        amount=pw.reducers.count(),
        total=pw.reducers.sum(table.temp),
    )


def word_count(rows: dict[str, pw.Table]) -> pw.Table:
    lines = rows["lines"]
    pairs = lines.select(
        pair=pw.apply_with_type(
            lambda line, ts: tuple(words_of((line, ts))),
            tuple[tuple[str, int], ...],
            lines.line,
            lines.ts,
        )
    ).flatten(pw.this.pair)
    words = pairs.select(word=pw.this.pair[0], ts=pw.this.pair[1])
    return words.groupby(words.word).reduce(
        words.word,
        ts=pw.reducers.max(words.ts),
        number=pw.reducers.count(),
        amount=pw.reducers.count(),
    )


def _prepared(table: pw.Table) -> pw.Table:
    return _fields_of(_mapped(table))


def _mapped(table: pw.Table) -> pw.Table:
    return table.select(
        row=pw.apply_with_type(
            lambda *fields: prepared(fields),
            tuple[str, int, float],
            table.id_,
            table.ts,
            table.temp,
        )
    )


def _fields_of(made: pw.Table) -> pw.Table:
    return made.select(id_=made.row[0], ts=made.row[1], temp=made.row[2])


class _Answers:
    """What the table says now: how many rows are in it, and what they add up to."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._result = Path(params["scratch"]) / "answers.json"
        self._mark = params["mark"]
        self._rows = params["rows_answered"]
        self._number = 0
        self._amount: float = 0
        self._marked_at: float | None = None

    def changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        sign = 1 if is_addition else -1
        self._number += sign * row["number"]
        self._amount += sign * row["amount"]
        if self._marked_at is None and row["ts"] >= self._mark:
            self._marked_at = _now()
        if self._number == self._rows and is_addition:
            self._write(_now())

    def _write(self, ended_at: float) -> None:
        seconds = None if self._marked_at is None else ended_at - self._marked_at
        made = self._result.with_suffix(".new")
        made.write_text(json.dumps({"final": self._amount, "seconds": seconds}))
        os.replace(made, self._result)


def _now() -> float:
    return time.perf_counter()


def _table(params: dict[str, Any], stream: str) -> pw.Table:
    columns = {_name(name): _TYPES[kind] for name, kind in _fields(params, stream)}
    return pw.io.fs.read(
        f"{params['scratch']}/{stream}",
        format="csv",
        schema=pw.schema_from_types(**columns),
        mode="streaming",
        autocommit_duration_ms=_COMMIT_MILLIS,
        max_backlog_size=_BACKLOG_ROWS,
    )


def _with_header(params: dict[str, Any], stream: str) -> None:
    directory = Path(params["scratch"]) / stream
    directory.mkdir()
    header = ",".join(_name(name) for name, _ in _fields(params, stream))
    for number, path in enumerate(paths_in(params, stream, ".csv")):
        copy = directory / path.name
        copy.write_text(f"{header}\n{path.read_text()}")
        os.utime(copy, (1_700_000_000 + number,) * 2)


def _fields(params: dict[str, Any], stream: str) -> list[list[str]]:
    return [field.split() for field in params["schemas"][stream].split(",")]


def _name(name: str) -> str:
    """`id` is what Pathway calls a row's own key."""
    return "id_" if name == "id" else name


def _first_port(processes: int) -> int:
    """The first of as many ports in a row; free a moment ago."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as held:
            first: int = held.getsockname()[1]
        if first + processes < 65536:
            return first
