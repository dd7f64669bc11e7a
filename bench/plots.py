"""Measured values over what they depend on, as SVG, with the line that was expected beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 56, 60
_COLOURS = ("#1f6f8b", "#b5562b", "#5b7f2b", "#7a4b9a")
_EXPECTED = "#9a9a9a"
_TEXT = 'font-family="sans-serif" font-size="13" fill="#222"'


@dataclass(frozen=True)
class Line:
    """Points from left to right. What was expected is drawn dashed, without marks."""

    title: str
    points: list[tuple[float, float]]
    expected: bool = False


@dataclass(frozen=True)
class Plot:
    name: str
    """Of its file."""
    title: str
    x_title: str
    y_title: str
    lines: list[Line] = field(default_factory=list)
    log_x: bool = True
    log_y: bool = False


def svg(plot: Plot) -> str:
    """The whole plot as one document."""
    points = [point for line in plot.lines for point in line.points]
    across = _Axis([x for x, _ in points], plot.log_x, _LEFT, _WIDTH - _RIGHT)
    up = _Axis([y for _, y in points], plot.log_y, _HEIGHT - _BOTTOM, _TOP, from_zero=True)
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="12" y="22" {_TEXT} font-weight="bold">{escape(plot.title)}</text>',
            *_grid(across, up),
            *_titles(plot),
            *(
                part
                for number, line in enumerate(plot.lines)
                for part in _line(line, number, across, up)
            ),
            *_legend(plot.lines),
            "</svg>",
            "",
        ]
    )


class _Axis:
    """Values to places. A linear one begins at zero if it may."""

    def __init__(
        self, values: list[float], log: bool, begin: float, end: float, from_zero: bool = False
    ) -> None:
        self._log = log and min(values) > 0
        low, high = min(values), max(values)
        if not self._log and from_zero:
            low, high = min(low, 0.0), high * 1.08
        self._low, self._high = self._scaled(low), self._scaled(high)
        if self._high == self._low:
            self._high += 1.0
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        share = (self._scaled(value) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)

    def ticks(self) -> Iterator[float]:
        if self._log:
            powers = range(math.ceil(self._low - 0.01), math.floor(self._high + 0.01) + 1)
            if len(powers) >= 2:
                yield from (10.0**power for power in powers)
                return
        low, high = (10**self._low, 10**self._high) if self._log else (self._low, self._high)
        step = 10 ** math.floor(math.log10((high - low) / 4))
        step *= next((m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6), 10)
        value = math.ceil(low / step) * step
        while value <= high + step / 1000:
            yield value
            value += step

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._log else value


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    floor = _HEIGHT - _BOTTOM
    for tick in across.ticks():
        x = across.at(tick)
        yield f'<path d="M{x:.1f} {_TOP}V{floor}" stroke="#ececec"/>'
        place = f'x="{x:.1f}" y="{floor + 18}" text-anchor="middle"'
        yield f"<text {place} {_TEXT}>{short(tick)}</text>"
    for tick in up.ticks():
        y = up.at(tick)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ececec"/>'
        place = f'x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"'
        yield f"<text {place} {_TEXT}>{short(tick)}</text>"
    yield f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}" stroke="#888" fill="none"/>'


def _titles(plot: Plot) -> Iterator[str]:
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    x_place = f'x="{middle}" y="{_HEIGHT - 14}" text-anchor="middle"'
    yield f"<text {x_place} {_TEXT}>{escape(plot.x_title)}</text>"
    turned = f'transform="translate(18 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)"'
    yield f'<text {turned} text-anchor="middle" {_TEXT}>{escape(plot.y_title)}</text>'


def _line(line: Line, number: int, across: _Axis, up: _Axis) -> Iterator[str]:
    places = [(across.at(x), up.at(y)) for x, y in sorted(line.points)]
    if not places:
        return
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    look = _look(line, number)
    yield f'<path class="line" d="{path}" fill="none" {look}/>'
    if not line.expected:
        for (x, y), (value_x, value_y) in zip(places, sorted(line.points), strict=True):
            said = escape(f"{line.title}: {short(value_x)} → {value_y:.4g}")
            dot = f'cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_colour(line, number)}"'
            yield f"<circle {dot}><title>{said}</title></circle>"


def _legend(lines: Iterable[Line]) -> Iterator[str]:
    x = float(_LEFT)
    for number, line in enumerate(lines):
        yield f'<path d="M{x:.0f} 40h22" {_look(line, number)}/>'
        yield f'<text x="{x + 28:.0f}" y="44" {_TEXT}>{escape(line.title)}</text>'
        x += 52 + 7.2 * len(line.title)


def _look(line: Line, number: int) -> str:
    dashes = ' stroke-dasharray="6 5"' if line.expected else ""
    return f'stroke="{_colour(line, number)}" stroke-width="2"{dashes}'


def _colour(line: Line, number: int) -> str:
    return _EXPECTED if line.expected else _COLOURS[number % len(_COLOURS)]


def short(value: float) -> str:
    """A number for an axis."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.4g}"
