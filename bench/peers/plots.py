"""A program's rates as bars on a log scale, as SVG: a factor is the same length everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _NUMBERS = 760, 210, 130
_BAR, _GAP, _TOP, _BOTTOM = 22, 8, 44, 34
_OURS, _THEIRS, _LIMIT = "#1f6f8b", "#b8b8b8", "#e0a458"
_STYLE = 'font-family="sans-serif" font-size="13" fill="#222"'


@dataclass(frozen=True)
class Bar:
    title: str
    rate: float
    low: float
    high: float
    kind: str = "theirs"
    """"ours", "theirs" or "limit": what it is coloured by."""


def svg(title: str, bars: Sequence[Bar]) -> str:
    """Sorted by rate; a thin line shows lowest and highest of the runs."""
    ordered = sorted(bars, key=lambda bar: -bar.rate)
    scale = _Scale(ordered)
    height = _TOP + len(ordered) * (_BAR + _GAP) + _BOTTOM
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" {_STYLE} font-weight="bold">{escape(title)}</text>',
    ]
    floor = height - _BOTTOM
    for power in scale.powers():
        x = scale.at(10**power)
        parts.append(f'<path d="M{x:.1f} {_TOP - 6}V{floor}" stroke="#e4e4e4"/>')
        place = f'x="{x:.1f}" y="{floor + 18}" text-anchor="middle"'
        parts.append(f"<text {place} {_STYLE}>{_power(power)}</text>")
    for number, bar in enumerate(ordered):
        parts += _bar(bar, _TOP + number * (_BAR + _GAP), scale)
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Rates to places; begins at a power of ten below the slowest."""

    def __init__(self, bars: Sequence[Bar]) -> None:
        self._low = math.floor(math.log10(min(bar.low for bar in bars) * 0.7))
        highest = math.log10(max(bar.high for bar in bars))
        self._high = max(highest, self._low + 1)

    def at(self, rate: float) -> float:
        share = (math.log10(rate) - self._low) / (self._high - self._low)
        return _LABELS + share * (_WIDTH - _LABELS - _NUMBERS)

    def powers(self) -> range:
        return range(self._low, math.floor(self._high) + 1)


def _bar(bar: Bar, y: int, scale: _Scale) -> list[str]:
    colour = {"ours": _OURS, "limit": _LIMIT}.get(bar.kind, _THEIRS)
    end, middle = scale.at(bar.rate), y + _BAR / 2
    text = y + _BAR - 6
    box = f'width="{max(end - _LABELS, 1):.1f}" height="{_BAR}"'
    return [
        f'<text x="{_LABELS - 8}" y="{text}" {_STYLE} text-anchor="end">{escape(bar.title)}</text>',
        f'<rect x="{_LABELS}" y="{y}" {box} fill="{colour}"/>',
        f'<path d="M{scale.at(bar.low):.1f} {middle}H{scale.at(bar.high):.1f}" stroke="#222"/>',
        f'<text x="{scale.at(bar.high) + 8:.1f}" y="{text}" {_STYLE}>{bar.rate:,.0f} /s</text>',
    ]


def _power(power: int) -> str:
    return {3: "1 k", 4: "10 k", 5: "100 k", 6: "1 M", 7: "10 M"}.get(power, f"{10.0**power:g}")
