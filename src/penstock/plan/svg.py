"""A physical plan as a drawing: stages are columns, chains are boxes, exchanges are arrows. Pure.

`svg_layout` decides where everything goes; here it is only drawn. Colours follow the viewer's light
or dark scheme, and the background is left to the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from penstock.plan.svg_layout import (
    SMALL,
    Arrow,
    ChainBox,
    Drawing,
    OperatorBox,
    StageColumn,
    layout_of,
)
from penstock.runtime.physical import PhysicalPlan

_LIGHT = {
    "stage": ("#f3f4f6", "none", "#6b7280"),
    "chain": ("#ffffff", "#cbd5e1", "#64748b"),
    "source": ("#dcfce7", "#16a34a", "#14532d"),
    "operator": ("#dbeafe", "#2563eb", "#1e3a8a"),
    "sink": ("#ffedd5", "#ea580c", "#7c2d12"),
    "label": ("#ffffff", "#cbd5e1", "#334155"),
}
_DARK = {
    "stage": ("#1f2937", "none", "#9ca3af"),
    "chain": ("#111827", "#475569", "#94a3b8"),
    "source": ("#14432a", "#22c55e", "#dcfce7"),
    "operator": ("#1e3a6e", "#60a5fa", "#dbeafe"),
    "sink": ("#5a2a12", "#fb923c", "#ffedd5"),
    "label": ("#1f2937", "#475569", "#cbd5e1"),
}
_ARROWS = ("#64748b", "#94a3b8")
_RADIUS = 12
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path class="tip" d="M0,0.5 L8,4 L0,7.5z"/></marker>'
)


def explain_svg(plan: PhysicalPlan) -> str:
    """The drawing as one SVG document."""
    drawing = layout_of(plan)
    size = f'width="{drawing.width}" height="{drawing.height}"'
    box = f'viewBox="0 0 {drawing.width} {drawing.height}"'
    title = quoteattr(f"Plan of job {plan.settings.job_name}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {size} role="img" aria-label={title}>',
        f"<style>{_style()}</style>",
        f"<defs>{_TIP}</defs>",
        *_drawn(drawing),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _style() -> str:
    font = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
    return (
        f"text{{{font};font-size:13px}}.small{{font-size:{SMALL}px}}"
        ".title{font-weight:600}"
        ".arrow,.within{fill:none;stroke-width:1.5}.feedback{stroke-dasharray:5 4}"
        + _colours(_LIGHT, _ARROWS[0])
        + f"@media (prefers-color-scheme:dark){{{_colours(_DARK, _ARROWS[1])}}}"
    )


def _colours(colours: dict[str, tuple[str, str, str]], arrows: str) -> str:
    boxes = "".join(
        f"rect.{name}{{fill:{fill};stroke:{stroke}}}text.{name}{{fill:{text}}}"
        for name, (fill, stroke, text) in colours.items()
    )
    return f"{boxes}.arrow,.within{{stroke:{arrows}}}.tip{{fill:{arrows}}}"


def _drawn(drawing: Drawing) -> Iterator[str]:
    for stage in drawing.stages:
        yield from _stage(stage)
    for arrow in drawing.arrows:
        yield _arrow(arrow)
    for chain in drawing.chains:
        yield from _chain(chain)
    for arrow in drawing.arrows:  # above everything: a label may lie over other arrows
        yield from _label(arrow)


def _stage(stage: StageColumn) -> Iterator[str]:
    yield _rect("stage", stage.x, stage.y, stage.width, stage.height, 10)
    yield _text("stage small title", stage.x + stage.width / 2, stage.y + 20, stage.title, "middle")


def _chain(chain: ChainBox) -> Iterator[str]:
    yield _rect("chain", chain.x, chain.y, chain.width, chain.height, 8)
    yield _text("chain small", chain.x + 12, chain.y + 18, chain.title)
    for operator in chain.operators:
        if operator.from_above is not None:
            x, y = operator.from_above
            middle = operator.y + operator.height / 2
            bend = f"M{x:g},{y:g} V{middle:g} H{operator.x:g}"
            straight = f"M{x:g},{y:g} V{operator.y:g}"
            yield f'<path class="within" d="{straight if x >= operator.x else bend}"/>'
        yield from _operator(operator)


def _operator(operator: OperatorBox) -> Iterator[str]:
    yield f"<g><title>{escape(operator.hint)}</title>"
    yield _rect(operator.kind, operator.x, operator.y, operator.width, operator.height, 5)
    yield _text(operator.kind, operator.x + 10, operator.y + 17, operator.name)
    yield _text(f"{operator.kind} small", operator.x + 10, operator.y + 32, operator.place)
    yield "</g>"


def _arrow(arrow: Arrow) -> str:
    kind = "arrow feedback" if arrow.feedback else "arrow"
    return f'<path class="{kind}" d="{_path(arrow)}" marker-end="url(#tip)"/>'


def _path(arrow: Arrow) -> str:
    """Forward: curves that begin and end level. Back: straight, with round corners."""
    if arrow.feedback:
        return _rounded(arrow.points)
    (x, y), *rest = arrow.points
    parts = [f"M{x:g},{y:g}"]
    for end_x, end_y in rest:
        if end_y == y:
            parts.append(f"H{end_x:g}")
        else:
            middle = (x + end_x) / 2
            parts.append(f"C{middle:g},{y:g} {middle:g},{end_y:g} {end_x:g},{end_y:g}")
        x, y = end_x, end_y
    return " ".join(parts)


def _rounded(points: tuple[tuple[float, float], ...]) -> str:
    parts = [f"M{points[0][0]:g},{points[0][1]:g}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before), _towards(corner, after)
        parts.append(
            f"L{start[0]:g},{start[1]:g} Q{corner[0]:g},{corner[1]:g} {end[0]:g},{end[1]:g}"
        )
    parts.append(f"L{points[-1][0]:g},{points[-1][1]:g}")
    return " ".join(parts)


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """A little away from a corner, on the way to another point."""
    away_x, away_y = other[0] - corner[0], other[1] - corner[1]
    length = max(abs(away_x), abs(away_y)) or 1.0
    step = min(_RADIUS, length / 2) / length
    return corner[0] + away_x * step, corner[1] + away_y * step


def _label(arrow: Arrow) -> Iterator[str]:
    x, y = arrow.label_at
    yield _rect("label", x, y - 9, arrow.label_width, 18, 9)
    yield _text("label small", x + arrow.label_width / 2, y + 4, arrow.label, "middle")


def _rect(kind: str, x: float, y: float, width: float, height: float, radius: int) -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'rx="{radius}"/>'
    )


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
