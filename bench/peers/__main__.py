"""The command line: ``python -m bench.peers``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench import machine
from bench.measure import median
from bench.peers import plots, tables
from bench.peers.contenders import BARE, CONTENDERS, PENSTOCK, PENSTOCK_COLUMNAR
from bench.peers.environments import NotInstalled, python_of, versions_in
from bench.peers.program import Program
from bench.peers.programs import all_programs
from bench.peers.rounds import Found, Measured, measure

_RESULTS = Path(__file__).resolve().parent.parent / "results"
_PACKAGES = {
    "pyflink": "apache-flink",
    "bytewax": "bytewax",
    "pathway": "pathway",
}
_KINDS = {PENSTOCK: "ours", PENSTOCK_COLUMNAR: "ours", BARE: "limit"}


def main(arguments: list[str] | None = None) -> int:
    known = all_programs()
    args = _parser(list(known)).parse_args(arguments)
    console = Console()
    programs = [known[name] for name in args.programs or known]
    names = args.contenders or list(CONTENDERS)
    about = {**machine.describe(), **_versions(console, names)}
    size = "smoke: the rates mean nothing" if args.smoke else f"{args.rounds} rounds"
    rounds = 1 if args.smoke else args.rounds

    def save(found: Found) -> None:
        tables.write(args.out, about, programs, found, size)
        _plot(args.out, programs, found)

    def say(text: str) -> None:
        console.print(text, style="dim", highlight=False)

    found = measure(programs, names, rounds, args.smoke, say, save)
    save(found)
    _show(console, programs, found)
    return (
        1 if any(_failed(measured) for here in found.values() for measured in here.values()) else 0
    )


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


def _show(console: Console, programs: list[Program], found: Found) -> None:
    for program in programs:
        for name, measured in found[program.name].items():
            rate = f"{median(measured.rates):>12,.0f} /s" if measured.rates else " " * 15
            console.print(f"{program.name:<16}{name:<22}{rate}", highlight=False)
            if measured.problem:
                console.print(f"  [red]{measured.problem}[/red]", highlight=False, markup=True)
        for goal in tables.goals_of(program, found):
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
        "--smoke", action="store_true", help="hardly any input: only whether answers are right"
    )
    parser.add_argument("--out", type=Path, default=_RESULTS, help="where results are written")
    return parser


if __name__ == "__main__":
    sys.exit(main())
