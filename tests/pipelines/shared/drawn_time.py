"""Streams and what windows make of them, drawn as time lines. Pure: text in, text out.

::

    time         0    5    10
    a            1-2--3--|         1 and 2 fall into the first window; then the watermark
    a fires      [----)            1 2
    a             4                late: its window has fired
    a fires      [----)            1 2 4
    end
    a fires           [----)       3

To the right is event time, a column is a second; downward is arrival. Rows arrive from top to
bottom, each from left to right, and what a row brings about stands right below it:

- ``a  1-2|``: the key ``a`` gets the elements 1 and 2; ``|`` says that nothing from before its
  column will come any more. A ``;`` begins a remark.
- ``a fires  [---)  1 2``: a window of ``a``, from ``[`` to before ``)``, gave the text at the end.
  ``*`` is the window that holds everything, ``#3`` the window by count number 3.
- ``a gives  1 2``: a result that tells no window.
- ``a late  3``: elements that went to the side output for late ones.
- ``clock  ---|``: the processing clock goes on to that column.
- ``end``: the input ends.
- ``time -5  0``: the ruler; numbers begin at their column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from penstock.datastream.window import CountWindow, GlobalWindow, TimeWindow

SECOND = 1000
LATE = "late"
_RESULT = 44
"""The column in which canonical drawings have the results."""


class Event(NamedTuple):
    """An element of a drawing; with the key `MARK` a watermark, with `TICK` the clock's."""

    key: str
    value: str
    at: int
    """In milliseconds."""

    @property
    def number(self) -> int:
        return int(self.value)


MARK = "|"
TICK = "clock"
END = Event("end", "", (1 << 63) - 1)


class Output(NamedTuple):
    key: str
    kind: str
    """fires, gives or late"""
    window: Any
    text: str


@dataclass(frozen=True)
class Row:
    """What arrives, as drawn, and what is to come of it."""

    drawn: str
    events: tuple[Event, ...]
    outputs: tuple[Output, ...] = field(default=())


@dataclass(frozen=True)
class Drawing:
    zero: int
    """The column of time 0."""
    rows: tuple[Row, ...]

    @property
    def outputs(self) -> list[Output]:
        return [output for row in self.rows for output in row.outputs]

    def with_outputs(self, found: list[list[Output]]) -> Drawing:
        """The same input with other results, row by row."""
        rows = [replace(row, outputs=tuple(o)) for row, o in zip(self.rows, found, strict=True)]
        return replace(self, rows=tuple(rows))

    def __str__(self) -> str:
        """Equal for drawings that mean the same: only the order of keys in a row says nothing."""
        lines = []
        for row in self.rows:
            lines += [row.drawn, *drawn_outputs(row.outputs, self.zero)]
        return "\n".join(lines)


def parse(text: str) -> Drawing:
    lines = [line.split(";")[0].rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    zero = _zero(lines[0])
    rows: list[Row] = []
    for line in lines[1:]:
        words = line.split()
        if words[1:2] and words[1] in ("fires", "gives", LATE):
            outputs = _outputs(line, zero, words[0], words[1])
            rows[-1] = replace(rows[-1], outputs=(*rows[-1].outputs, *outputs))
        else:
            rows.append(Row(line, tuple(_events(line, zero, words[0]))))
    if not rows or rows[-1].events != (END,):
        raise ValueError("a drawing must finish with `end`, and what that brings about")
    return Drawing(zero, tuple(rows))


def _zero(ruler: str) -> int:
    labels = [(m.start(), int(m.group())) for m in re.finditer(r"-?\d+", ruler)]
    zeros = {column - time for column, time in labels}
    if not ruler.lstrip().startswith("time") or len(zeros) != 1:
        raise ValueError(f"not a ruler, or one with labels out of place: {ruler!r}")
    return zeros.pop()


def _behind_label(line: str, words: int) -> int:
    label = re.match(r"\s*\S+" + r"\s+\S+" * (words - 1), line)
    assert label is not None
    return label.end()


def _events(line: str, zero: int, label: str) -> list[Event]:
    if label == "end":
        return [END]
    events = []
    for column in range(_behind_label(line, 1), len(line)):
        char, at = line[column], (column - zero) * SECOND
        if label == TICK and char == "|":
            events.append(Event(TICK, "", at))
        elif char == "|":
            events.append(Event(MARK, "", at - 1))
        elif char.isalnum():
            events.append(Event(label, char, at))
        elif char not in " -":
            raise ValueError(f"{char!r} means nothing: {line!r}")
    return events


def _outputs(line: str, zero: int, key: str, kind: str) -> list[Output]:
    start = _behind_label(line, 2)
    rest = line[start:].strip()
    if kind == LATE:
        found = [(column, line[column]) for column in range(start, len(line))]
        return [late(key, c, (at - zero) * SECOND) for at, c in found if c.isalnum()]
    if kind == "gives":
        return [Output(key, kind, None, rest)]
    window: Any
    if rest.startswith("["):
        opens, closes = line.index("[", start), line.index(")", start)
        window = TimeWindow((opens - zero) * SECOND, (closes - zero) * SECOND)
        return [Output(key, kind, window, line[closes + 1 :].strip())]
    mark, _, text = rest.partition(" ")
    window = GlobalWindow() if mark == "*" else CountWindow(int(mark.removeprefix("#")))
    return [Output(key, kind, window, text.strip())]


def late(key: str, value: str, at: int) -> Output:
    return Output(key, LATE, at, value)


def drawn_outputs(outputs: Any, zero: int = 14) -> list[str]:
    """Each key's in their order; the order of keys says nothing, nor that of late elements."""
    in_order = sorted(outputs, key=lambda output: (output.key, output.kind == LATE))
    return [_drawn(output, zero) for output in in_order]


def _drawn(output: Output, zero: int) -> str:
    label = f"{output.key} {output.kind}"
    if output.kind == "gives":
        return f"{label:{_RESULT}}{output.text}"
    if output.kind == LATE:
        return _at(label, zero, output.window, output.text)
    window = output.window
    if isinstance(window, TimeWindow):
        if window.start % SECOND or window.end % SECOND:
            return f"{label}  {window}  {output.text}"
        width = (window.end - window.start) // SECOND
        drawn = _at(label, zero, window.start, f"[{'-' * (width - 1)})")
    else:
        drawn = f"{label}  " + ("*" if isinstance(window, GlobalWindow) else f"#{window.id}")
    return f"{drawn:{_RESULT}}{output.text}"


def _at(label: str, zero: int, time: int, what: str) -> str:
    return f"{label:{zero + time // SECOND}}{what}"
