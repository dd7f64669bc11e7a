"""The comparison as Markdown and JSON, with goals beside the ratios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.measure import Goal, median
from bench.peers.contenders import CONTENDERS, PENSTOCK
from bench.peers.program import Program
from bench.peers.ratios import compared, goals
from bench.peers.rounds import Found, Measured

_HOW = """\
Read the ratios, not the rates: all contenders ran in turn on this machine, each in a process of its
own. A ratio is the median over the rounds of Penstock's rate divided by the contender's; above 1
Penstock is faster. Starting up does not count: the clock runs from the moment when the part of the
input that warms up has been answered to the last answer. Every contender's answers were equal to a
direct computation, or there is no rate. Penstock and the two of Spark make every batch durable; the
other peers run without checkpoints, which is their quickest."""


def write(
    directory: Path, about: dict[str, str], programs: Sequence[Program], found: Found, size: str
) -> None:
    """``peers.md`` and ``peers.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "peers.md").write_text(markdown(about, programs, found, size))
    (directory / "peers.json").write_text(json.dumps(as_data(about, found, size), indent=1) + "\n")


def as_data(about: dict[str, str], found: Found, size: str) -> dict[str, Any]:
    return {
        "about": about,
        "size": size,
        "programs": {
            program: {
                "ratios": asdict(compared(PENSTOCK, _rates(here))),
                "contenders": {name: asdict(measured) for name, measured in here.items()},
            }
            for program, here in found.items()
        },
    }


def markdown(about: dict[str, str], programs: Sequence[Program], found: Found, size: str) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in about.items())
    lines = ["# Penstock and its peers", "", f"Size: {size}. {facts}.", "", _HOW, ""]
    every_goal = [goal for program in programs for goal in goals_of(program, found)]
    if every_goal:
        lines += ["## Goals", "", "| ratio | measured | goal | |", "|:--|--:|--:|:--|"]
        lines += [_goal_row(goal) for goal in every_goal]
        lines.append("")
    for program in programs:
        if program.name in found:
            lines += _section(program, found[program.name])
    return "\n".join(lines)


def goals_of(program: Program, found: Found) -> list[Goal]:
    return goals(program.name, program.goals, _rates(found.get(program.name, {})))


def _goal_row(goal: Goal) -> str:
    verdict = "met" if goal.met else "**not met**"
    return f"| {goal.what} | {_number(goal.measured)} | ≥ {_number(goal.limit)} | {verdict} |"


def _section(program: Program, here: dict[str, Measured]) -> list[str]:
    ratios = compared(PENSTOCK, _rates(here))
    lines = [
        f"## {program.name}: {program.title}",
        "",
        f"![{program.name}](peers-{program.name}.svg)",
        "",
        "| contender | Penstock / it | lowest–highest | its rows/s | rows | runs |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    problems = []
    for name, measured in here.items():
        title = CONTENDERS[name].title
        if measured.problem:
            problems.append(f"- {title}: {_in_short(measured.problem)}")
        if not measured.rates:
            continue
        ratio, spread = "", ""
        if name in ratios.by:
            low, high = ratios.spread[name]
            ratio, spread = _number(ratios.by[name]), f"{_number(low)}–{_number(high)}"
        rate = f"{median(measured.rates):,.0f}"
        runs = str(len(measured.rates))
        lines.append(f"| {title} | {ratio} | {spread} | {rate} | {measured.rows:,} | {runs} |")
    return [*lines, "", *problems, *([""] if problems else [])]


def _rates(here: dict[str, Measured]) -> dict[str, list[float]]:
    return {name: measured.rates for name, measured in here.items()}


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _in_short(text: str) -> str:
    """What failed, and the last that it said."""
    lines = text.strip().splitlines()
    return " … ".join(dict.fromkeys([lines[0], lines[-1]]))
