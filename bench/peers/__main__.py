"""The command line: ``python -m bench.peers``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench import machine
from bench.measure import median
from bench.peers import plots, tables
from bench.peers.contenders import (
    BARE,
    CONTENDERS,
    PENSTOCK,
    PENSTOCK_COLUMNAR,
    PENSTOCK_FILE_COLUMNS,
    PENSTOCK_FILES,
)
from bench.peers.environments import NotInstalled, python_of, versions_in
from bench.peers.program import Program
from bench.peers.programs import all_programs
from bench.peers.rounds import Found, Measured, measure
from bench.peers.tables import Section

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = _ROOT / "bench" / "results"
_SMOKE = _ROOT / ".bench" / "smoke"
_PACKAGES = {
    "pyflink": "apache-flink",
    "bytewax": "bytewax",
    "pathway": "pathway",
}
_OURS = (PENSTOCK, PENSTOCK_COLUMNAR, PENSTOCK_FILES, PENSTOCK_FILE_COLUMNS)
_KINDS = {**dict.fromkeys(_OURS, "ours"), BARE: "limit"}


def main(arguments: list[str] | None = None) -> int:
    known = all_programs()
    args = _parser(list(known)).parse_args(arguments)
    console = Console()
    if args.smoke:
        known = {name: replace(program, goals=()) for name, program in known.items()}
    programs = [_sized_for(args.speed, known[name]) for name in args.programs or known]
    names = args.contenders or list(CONTENDERS)
    about = {**machine.describe(), **_versions(console, names)}
    size = (
        "smoke: the rates mean nothing"
        if args.smoke
        else f"{args.rounds} round{'' if args.rounds == 1 else 's'}{_shortened(args.share)}"
    )
    rounds = 1 if args.smoke else args.rounds
    out = args.out or (_SMOKE if args.smoke else _RESULTS)
    sections = tables.earlier(out)
    before = dict(sections) if args.add else {}

    def save(found: Found) -> None:
        """Those of programs that were not asked for stay as they were."""
        for name, here in found.items():
            section = Section(about, size, here)
            sections[name] = before[name].with_more(section) if name in before else section
        tables.write(out, known.values(), sections)
        _plot(out, programs, {name: sections[name].found for name in found})

    def say(text: str) -> None:
        console.print(text, style="dim", highlight=False)

    found = measure(programs, names, rounds, args.smoke, say, save, args.share)
    _show(console, programs, sections)
    console.print(f"\nwritten to {out}", highlight=False)
    return (
        1 if any(_failed(measured) for here in found.values() for measured in here.values()) else 0
    )


def _sized_for(speed: float, program: Program) -> Program:
    """All get less input on a slower machine, so that they warm up and are measured for as long."""
    return replace(program, rates={name: rate * speed for name, rate in program.rates.items()})


def _shortened(share: float) -> str:
    return "" if share == 1 else f" of {share:g} of the usual length"


def _versions(console: Console, names: list[str]) -> dict[str, str]:
    """Makes the environments before anything is measured. Who has none is reported later."""
    versions: dict[str, str] = {}
    for name in dict.fromkeys(CONTENDERS[name].environment for name in names):
        if name is None:
            continue
        console.print(f"environment of {name}", style="dim")
        try:
            versions |= versions_in(python_of(name), [_PACKAGES.get(name, name)])
        except NotInstalled as error:
            versions[name] = "not installed"
            console.print(f"[red]{error}[/red]", highlight=False)
    return versions


def _plot(directory: Path, programs: list[Program], found: Found) -> None:
    for program in programs:
        bars = [
            plots.Bar(
                CONTENDERS[name].title,
                median(measured.rates),
                min(measured.rates),
                max(measured.rates),
                _KINDS.get(name, "theirs"),
            )
            for name, measured in found.get(program.name, {}).items()
            if measured.rates
        ]
        if bars:
            text = plots.svg(f"{program.title}: rows per second", bars)
            (directory / f"peers-{program.name}.svg").write_text(text)


def _show(console: Console, programs: list[Program], sections: dict[str, Section]) -> None:
    for program in programs:
        section = sections[program.name]
        for name, measured in section.found.items():
            rate = f"{median(measured.rates):>12,.0f} /s" if measured.rates else " " * 15
            console.print(f"{program.name:<16}{name:<22}{rate}", highlight=False)
            if measured.problem:
                console.print(f"  [red]{measured.problem}[/red]", highlight=False, markup=True)
        for goal in tables.goals_of(program, section):
            style = "green" if goal.met else "red"
            console.print(
                f"  [{style}]{goal.what}: {goal.measured:.2f} (goal {goal.limit:g})[/{style}]"
            )


def _failed(measured: Measured) -> bool:
    """Wrong answers are an error of ours; a peer that cannot be installed is not."""
    return measured.problem is not None and measured.problem.startswith("WrongAnswers")


def _parser(programs: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--programs", nargs="+", choices=programs, help="all by default")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), help="all by default")
    parser.add_argument("--rounds", type=int, default=3, help="of which medians are taken")
    parser.add_argument(
        "--add", action="store_true", help="to the rounds measured before, instead of anew"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of what is usually measured in a round (1.0: about 20 s for each contender)",
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        help="of this machine, beside one on which a bare keyed count does a million rows a second",
    )
    parser.add_argument(
        "--smoke", action="store_true", help="hardly any input: only whether answers are right"
    )
    parser.add_argument("--out", type=Path, help="where results are written (bench/results)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
