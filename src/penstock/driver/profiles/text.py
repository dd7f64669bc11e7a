"""A profile as text: a table of operators, what else tasks did, and where wall time went. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.driver.profiles.summary import STEPS, OperatorTime, Summary
from penstock.runtime.profiling.samples import NOT_WORK

_LONGEST_NAME = 40
_COLUMNS = ("operator", "line", "self %", "total %", "records", "µs/record", "subtasks")


def profile_text(summary: Summary) -> str:
    failed = f", {summary.failed_epochs} of them run again" if summary.failed_epochs else ""
    head = (
        f"Profile of job {summary.job}: {summary.seconds:.1f} s, {summary.epochs} epochs{failed}, "
        f"{summary.samples:,} samples, one every {summary.interval * 1000:g} ms"
    )
    lines = [head, ""]
    if not summary.samples:
        lines.append("No task was seen at work: no epoch has ended, or all were very short.")
    else:
        lines += _table([_COLUMNS, *(_row(operator) for operator in summary.operators)], 2)
        lines += ["", *_kinds(summary)]
    return "\n".join([*lines, "", *_steps(summary)]) + "\n"


def _row(operator: OperatorTime) -> tuple[str, ...]:
    per_record = operator.micros_per_record
    return (
        _short(operator.label),
        operator.location,
        f"{operator.self_percent:.1f}",
        f"{operator.total_percent:.1f}",
        f"{operator.records:,}",
        "–" if per_record is None else f"{per_record:.2f}",
        str(operator.subtasks),
    )


def _kinds(summary: Summary) -> Iterator[str]:
    yield f"Tasks worked {summary.worked_seconds:.2f} s in all:"
    working = {k: s for k, s in summary.kinds.items() if k not in NOT_WORK}
    yield from _table(
        [
            (f"  {kind}", f"{s:.2f} s", _share(s, summary.worked_seconds))
            for kind, s in working.items()
        ],
        1,
    )
    waited = {kind: s for kind, s in summary.kinds.items() if kind in NOT_WORK}
    if waited:
        yield "Beside that they were " + ", ".join(f"{k} {s:.2f} s" for k, s in waited.items())


def _steps(summary: Summary) -> Iterator[str]:
    yield "Wall time:"
    rows = [
        (f"  {title}", f"{summary.steps[step]:.2f} s", _share(summary.steps[step], summary.seconds))
        for step, title in STEPS.items()
    ]
    yield from _table(rows, 1)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _table(rows: Iterable[tuple[str, ...]], to_the_left: int) -> list[str]:
    """Columns as wide as their widest cell; the first ones are texts, the others numbers."""
    cells = list(rows)
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index < to_the_left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
