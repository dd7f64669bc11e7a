"""Results as tables on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.measure import Goal, Report
from bench.plots import svg


def show(console: Console, report: Report) -> None:
    table = Table(title=f"{report.name}: {report.title}", title_justify="left")
    for number, column in enumerate(report.columns):
        table.add_column(column, justify="right" if number else "left")
    for row in report.rows:
        table.add_row(*row)
    console.print(table)
    for goal in report.goals:
        style = "green" if goal.met else "red"
        console.print(f"  [{style}]{_goal_text(goal)}[/{style}]")
    for note in report.notes:
        console.print(f"  [dim]{note}[/dim]")
    console.print()


def write(directory: Path, machine: dict[str, str], reports: list[Report], size: str) -> None:
    """``latest.json`` and ``latest.md``, and the plots beside them."""
    directory.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": machine,
        "size": size,
        "benchmarks": {report.name: dataclasses.asdict(report) for report in reports},
    }
    (directory / "latest.json").write_text(json.dumps(data, indent=1) + "\n")
    (directory / "latest.md").write_text(markdown(machine, reports, size))
    for plot in (plot for report in reports for plot in report.plots):
        (directory / f"{plot.name}.svg").write_text(svg(plot))


def markdown(machine: dict[str, str], reports: list[Report], size: str) -> str:
    about = ", ".join(f"{key} {value}" for key, value in machine.items())
    lines = ["# Benchmark results", "", f"Size: {size}. Machine: {about}.", ""]
    for report in reports:
        lines += [f"## {report.name}: {report.title}", ""]
        lines += _markdown_table(report.columns, report.rows)
        lines.append("")
        lines += [f"- {_goal_text(goal)}" for goal in report.goals]
        lines += [f"- {note}" for note in report.notes]
        lines.append("")
        lines += [f"![{plot.title}]({plot.name}.svg)" for plot in report.plots]
        if report.plots:
            lines.append("")
    return "\n".join(lines)


def _markdown_table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    rule = "|".join([":--", *["--:"] * (len(columns) - 1)])
    return [f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _goal_text(goal: Goal) -> str:
    sign = "at least" if goal.at_least else "at most"
    verdict = "met" if goal.met else "NOT met"
    return (
        f"{goal.what}: {goal.measured:.3g}{goal.unit} "
        f"(goal: {sign} {goal.limit:.3g}{goal.unit}; {verdict})"
    )
