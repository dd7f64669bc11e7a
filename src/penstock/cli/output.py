"""How commands show what they found: tables for people, one JSON document for programs.

rich is loaded only for a terminal: who reads a pipe wants whole lines, and no colours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

Tell = Callable[[str], None]


def print_json(document: Any) -> None:
    """One document, and nothing else on standard output."""
    print(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_error(error: BaseException, code: int, as_json: bool) -> None:
    if as_json:
        shown = {"code": code, "type": type(error).__name__, "message": str(error)}
        print(json.dumps({"error": shown}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"penstock: {error}", file=sys.stderr)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], nothing: str) -> None:
    """A table, or a sentence if it would be empty; numbers stand at the right."""
    if not rows:
        print(nothing)
        return
    texts = [[as_cell(value) for value in row] for row in rows]
    right = [
        all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(columns))
    ]
    if sys.stdout.isatty():
        _print_rich_table(columns, texts, right)
        return
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    for line in [[name.upper() for name in columns], *texts]:
        cells = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(cells).rstrip())


def _print_rich_table(
    columns: Sequence[str], texts: list[list[str]], right: Sequence[bool]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name, is_right in zip(columns, right, strict=True):
        table.add_column(name, justify="right" if is_right else "left", overflow="fold")
    for row in texts:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console = Console(highlight=False)
    if columns[-1] == "path":
        # Left to the terminal to wrap: what is selected there is the whole path.
        unbounded = console.options.update(max_width=10_000)
        console.width = max(console.width, console.measure(table, options=unbounded).maximum)
    console.print(table)


_STYLES = {
    "RUNNING": "green",
    "FINISHED": "green",
    "RESTARTING": "yellow",
    "CANCELLING": "yellow",
    "CANCELED": "yellow",
    "FAILED": "red",
    "LOST": "red",
    "damaged": "red",
    "incomplete": "yellow",
}


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one per line; those that are not known are left out."""
    known = {name: as_cell(value) for name, value in facts.items() if value not in (None, "")}
    width = max(map(len, known), default=0)
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    for name, text in known.items():
        print(f"{bold}{name:{width}}{plain}  {text}")


def as_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return " ".join(str(value).split())


@contextmanager
def waiting(what: str, as_json: bool = False) -> Iterator[Tell]:
    """Something takes its time: a line that moves, if somebody watches. Gives a way to say more."""
    if as_json or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as status:
        yield lambda text: status.update(escape(f"{what} {text}"))


def iso_time(millis: int | None) -> str | None:
    """For programs: with the zone, in whole milliseconds."""
    if millis is None:
        return None
    moment = datetime.fromtimestamp(millis / 1000, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(millis: int | None) -> str | None:
    """For people: by their own clock."""
    if millis is None:
        return None
    return datetime.fromtimestamp(millis / 1000).strftime("%Y-%m-%d %H:%M:%S")


def in_words(seconds: float) -> str:
    """A span of time in its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def in_bytes(size: int) -> str:
    """Bytes in the unit that leaves few digits."""
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
