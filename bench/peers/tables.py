"""The comparison as Markdown and JSON, with goals beside the ratios."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measure import Goal, median
from bench.peers.contenders import CONTENDERS, PENSTOCK
from bench.peers.program import Program
from bench.peers.ratios import compared, goals
from bench.peers.rounds import Measured

_DATA = "peers.json"
_HOW = """\
Read the ratios, not the rates: all contenders ran in turn on this machine, each in a process of its
own. A ratio is the median over the rounds of Penstock's rate divided by the contender's; above 1
Penstock is faster. Starting up does not count: the clock runs from the moment when the part of the
input that warms up has been answered to the last answer. Every contender's answers were equal to a
direct computation, or there is no rate. Penstock and the two of Spark make every batch durable; the
other peers run without checkpoints, which is their quickest."""


@dataclass(frozen=True)
class Section:
    """What was found of one program, and how: programs may be run on different days."""

    about: dict[str, str]
    size: str
    found: dict[str, Measured]

    @property
    def rates(self) -> dict[str, list[float]]:
        return {name: measured.rates for name, measured in self.found.items()}

    def with_more(self, later: Section) -> Section:
        """With the rounds of a later run, in which not all need to have taken part."""
        found = dict(self.found)
        for name, measured in later.found.items():
            found[name] = found[name].with_more(measured) if name in found else measured
        return Section({**self.about, **later.about}, f"{self.size}, then {later.size}", found)


def write(directory: Path, programs: Iterable[Program], sections: dict[str, Section]) -> None:
    """``peers.md`` and ``peers.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "peers.md").write_text(markdown(programs, sections))
    (directory / _DATA).write_text(json.dumps(_as_data(sections), indent=1) + "\n")


def earlier(directory: Path) -> dict[str, Section]:
    """What runs of before have left there."""
    path = directory / _DATA
    if not path.exists():
        return {}
    return {
        program: Section(
            data["about"],
            data["size"],
            {name: Measured(**measured) for name, measured in data["contenders"].items()},
        )
        for program, data in json.loads(path.read_text()).items()
    }


def _as_data(sections: dict[str, Section]) -> dict[str, Any]:
    return {
        program: {
            "about": section.about,
            "size": section.size,
            "ratios": asdict(compared(PENSTOCK, section.rates)),
            "contenders": {name: asdict(measured) for name, measured in section.found.items()},
        }
        for program, section in sections.items()
    }


def markdown(programs: Iterable[Program], sections: dict[str, Section]) -> str:
    lines = ["# Penstock and its peers", "", _HOW, ""]
    there = [program for program in programs if program.name in sections]
    every_goal = [goal for program in there for goal in goals_of(program, sections[program.name])]
    if every_goal:
        lines += ["## Goals", "", "| ratio | measured | goal | |", "|:--|--:|--:|:--|"]
        lines += [_goal_row(goal) for goal in every_goal]
        lines.append("")
    for program in there:
        lines += _section(program, sections[program.name])
    return "\n".join(lines)


def goals_of(program: Program, section: Section) -> list[Goal]:
    return goals(program.name, program.goals, section.rates)


def _goal_row(goal: Goal) -> str:
    verdict = "met" if goal.met else "**not met**"
    return f"| {goal.what} | {_number(goal.measured)} | ≥ {_number(goal.limit)} | {verdict} |"


def _section(program: Program, section: Section) -> list[str]:
    ratios = compared(PENSTOCK, section.rates)
    lines = [
        f"## {program.name}: {program.title}",
        "",
        f"![{program.name}](peers-{program.name}.svg)",
        "",
        "| contender | Penstock / it | lowest–highest | its rows/s | rows | runs |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    problems = []
    for name, measured in section.found.items():
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
    facts = ", ".join(f"{key} {value}" for key, value in section.about.items())
    return [*lines, "", *problems, *([""] if problems else []), f"{section.size}; {facts}.", ""]


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _in_short(text: str) -> str:
    """What failed, and the last that it said."""
    lines = text.strip().splitlines()
    return " … ".join(dict.fromkeys([lines[0], lines[-1]]))
