"""Runs programs on contenders, one process after the other, and checks what they answered."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.measure import ContenderFailed, Params, Result, run
from bench.peers.contenders import CONTENDERS, Contender
from bench.peers.environments import NotInstalled, python_of
from bench.peers.expected import Expected
from bench.peers.inputs import FULL, SMALL, Scale, as_csv
from bench.peers.program import Program

_LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Size:
    """How much of the input a contender gets, in files."""

    cold: int
    measured: int

    @property
    def files(self) -> int:
        return self.cold + self.measured


@dataclass
class Measured:
    """A program on a contender: one result for each round that went well, or why there is none."""

    rows: int = 0
    rates: list[float] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    problem: str | None = None

    def with_more(self, later: Measured) -> Measured:
        """With the rounds of a later run."""
        return Measured(
            later.rows or self.rows,
            [*self.rates, *later.rates],
            [*self.results, *later.results],
            later.problem,
        )


Found = dict[str, dict[str, Measured]]
"""Program → contender → what was measured."""


def size_of(
    program: Program, contender: Contender, smoke: bool, scale: Scale, share: float = 1
) -> Size:
    """So many files that a run takes about as long for the slow ones as for the quick ones.

    `share`: of what is usually measured; warming up takes as long as ever.
    """
    if smoke:
        return Size(2, 4)
    rate = program.rates[contender.name]
    step = contender.files_per_epoch * program.batch or 1
    return Size(
        _files(rate * contender.cold_seconds, step, scale),
        _files(rate * contender.measured_seconds * share, step, scale),
    )


def _files(rows: float, step: int, scale: Scale) -> int:
    return max(1, math.ceil(rows / scale.rows_per_file / step)) * step


def measure(
    programs: Iterable[Program],
    contenders: Iterable[str],
    rounds: int,
    smoke: bool,
    say: Callable[[str], None],
    after_each: Callable[[Found], None],
    share: float = 1,
) -> Found:
    """Contenders alternate within a round. Who failed once does not take part again."""
    names = list(contenders)
    found: Found = {}
    for program in programs:
        here = found[program.name] = _entered(program, names)
        for number in range(rounds):
            for name, measured in here.items():
                if measured.problem is None:
                    say(f"{program.name}: {name} (round {number + 1} of {rounds})")
                    _measure_one(program, CONTENDERS[name], measured, smoke, share)
                    after_each(found)
    return found


def _entered(program: Program, names: list[str]) -> dict[str, Measured]:
    entered = {name: Measured() for name in names if name in program.calls}
    for name in names:
        if name in program.absent:
            entered[name] = Measured(problem=program.absent[name])
    return entered


def _measure_one(
    program: Program, contender: Contender, into: Measured, smoke: bool, share: float
) -> None:
    scale = SMALL if smoke else FULL
    size = size_of(program, contender, smoke, scale, share)
    try:
        python = python_of(contender.environment)
        order = _order(program, contender, size, smoke, scale)
        result = run(program.calls[contender.name], order, _LONGEST_SECONDS, python)
        _check(program, result, _expected(program, size.files, scale))
    except (ContenderFailed, NotInstalled, WrongAnswers) as error:
        into.problem = f"{type(error).__name__}: {error}"
        return
    if "share" in result:
        into.rows = round(result["share"] * _rows_in(program, size.files, scale))
    else:
        into.rows = _rows(program, contender, size, scale)
    if not result["seconds"] or not into.rows:
        into.problem = "no answer came behind the mark"
        return
    into.rates.append(into.rows / result["seconds"])
    into.results.append({**result, **asdict(size), "load": os.getloadavg()[0]})


def _order(program: Program, contender: Contender, size: Size, smoke: bool, scale: Scale) -> Params:
    inputs = program.inputs(size.files, scale)
    if contender.reads_csv:
        for directory in inputs.values():
            as_csv(directory, size.files)
    return {
        "program": program.name,
        "inputs": {stream: str(directory) for stream, directory in inputs.items()},
        "files": size.files,
        "cold_files": size.cold,
        "mark": program.mark(size.cold),
        "rows_answered": _expected(program, size.files, scale).outputs,
        "files_per_epoch": min(contender.files_per_epoch, 2)
        if smoke
        else contender.files_per_epoch * program.batch,
        **program.order,
        **contender.params,
    }


def _rows(program: Program, contender: Contender, size: Size, scale: Scale) -> int:
    """Rows between mark and end."""
    cold, every = (_rows_in(program, files, scale) for files in (size.cold, size.files))
    return every - program.rows_before_mark(cold, size.cold, bool(contender.files_per_epoch))


def _rows_in(program: Program, files: int, scale: Scale) -> int:
    if program.rows_in is None:
        return files * scale.rows_per_file
    return program.rows_in(files, scale)


class WrongAnswers(RuntimeError):
    """A contender's answers are not those of the direct computation."""


def _check(program: Program, result: Result, expected: Expected) -> None:
    got = {name: result.get(name) for name in ("outputs", "checksum", "final")}
    if not expected.matches(**got):
        raise WrongAnswers(f"{program.name}: {got} instead of {asdict(expected)}")


_known: dict[Any, Expected] = {}


def _expected(program: Program, files: int, scale: Scale) -> Expected:
    """Computed once for all contenders and rounds that read as much."""
    key = (program.name, files, scale)
    if key not in _known:
        _known[key] = program.expected(program.inputs(files, scale), files)
    return _known[key]
