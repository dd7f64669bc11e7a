"""A job that a test leads by the hand: a source that gives the numbers up to a limit in a file, and
counts that it writes to files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.common import Types
from penstock.common.serialization import Encoder
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
    StartFrom,
)
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor

KEYS = 5
SAVEPOINTS = "execution.checkpointing.savepoint-dir"
START = "execution.state-recovery.path"

StartJob = Callable[..., Any]
"""What `job` in conftest is: gate, settings, function, output → handle."""


class GatedSource(Source):
    """0, 1, 2 … up to the number in the file, which may grow; it ends at `end`."""

    def __init__(self, gate: Path, end: int | None = None, first: int = 0) -> None:
        self._gate = str(gate)
        self._end = end
        self._first = first

    @property
    def boundedness(self) -> Boundedness:
        bounded = self._end is not None
        return Boundedness.BOUNDED if bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("numbers", self._gate, self._first)]

    def starting_at(self, start: StartFrom) -> Source:
        assert start.at_position is not None
        return GatedSource(Path(self._gate), self._end, start.at_position)

    def create_reader(self, context: InitContext) -> SourceReader:
        return _GatedReader(self._end)


class _GatedReader(SourceReader):
    def __init__(self, end: int | None) -> None:
        self._end = end

    def read(self, split: Split, position: Any, max_records: int) -> ReadResult:
        limit = int(Path(split.data).read_text() or position)  # it may just be written
        stop = max(position, min(limit, position + max_records))
        return ReadResult(
            list(range(position, stop)),
            stop,
            finished=self._end is not None and stop >= self._end,
            timestamps=list(range(position, stop)),
        )


def open_gate(gate: Path, limit: int) -> None:
    """Let numbers through up to this one; in one step, since somebody may be reading."""
    new = gate.with_suffix(".new")
    new.write_text(str(limit))
    new.replace(gate)


class Count(KeyedProcessFunction):
    """(key, how many numbers it has had)."""

    def open(self, context: Any) -> None:
        self._count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, context: Any) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{context.get_current_key()} {count}"


def counts(env: Any, gate: Path, out: Path, function: Any = None, end: int | None = None) -> None:
    """The job: counts per key, in files."""
    numbers = env.from_source(GatedSource(gate, end)).uid("numbers").set_parallelism(1)
    counted = numbers.key_by(lambda n: n % KEYS).process(function or Count()).uid("counts")
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()
    counted.sink_to(sink).uid("files")


def expected(*ranges: range) -> list[str]:
    """What the job writes for these numbers, one range after the other, its counts kept."""
    found: list[str] = []
    seen = dict.fromkeys(range(KEYS), 0)
    for numbers in ranges:
        for n in numbers:
            seen[n % KEYS] += 1
            found.append(f"{n % KEYS} {seen[n % KEYS]}")
    return sorted(found)


def since(saved: int, now: int) -> list[str]:
    """What a job writes that has gone on from one number to another."""
    return sorted(set(expected(range(now))) - set(expected(range(saved))))


def written(out: Path) -> list[str]:
    """The lines that are visible by now."""
    visible = (p for p in out.glob("[!.]*/*") if not p.name.startswith("."))
    files = [p for p in (*visible, *out.glob("[!.]*")) if p.is_file()]
    return sorted(line for path in files for line in path.read_text().splitlines())


def await_lines(directory: Path, count: int, out: str = "out") -> None:
    """The counts of the first numbers are written, and nothing else."""
    await_true(lambda: len(written(directory / out)) >= count)
    assert written(directory / out) == expected(range(count))


def await_true(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
