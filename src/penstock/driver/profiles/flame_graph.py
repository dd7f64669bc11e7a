"""Folded stacks as a flame graph: one SVG document that needs nothing else. Pure.

The root is on top. Hovering shows a frame's name and share; a click makes it as wide as the
drawing, a click on the root undoes that. Without scripts it is still a drawing with titles.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

_WIDTH = 1200
_ROW = 18
_TOP = 52
_MARGIN = 10
_LETTER = 6.6
# Narrower than this nobody can point at it, and thousands of them make a browser slow.
_NARROWEST = 0.3


@dataclass
class _Node:
    label: str
    micros: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, stack: tuple[str, ...], micros: int) -> None:
        self.micros += micros
        node = self
        for label in stack:
            node = node.children.setdefault(label, _Node(label))
            node.micros += micros

    @property
    def depth(self) -> int:
        return 1 + max((child.depth for child in self.children.values()), default=0)


def flame_graph(title: str, stacks: Mapping[tuple[str, ...], int]) -> str:
    """Stacks from the outermost frame inward, each with its microseconds."""
    root = _Node("all tasks")
    for stack, micros in sorted(stacks.items()):
        root.add(stack, micros)
    height = _TOP + root.depth * _ROW + _MARGIN
    box = f'viewBox="0 0 {_WIDTH} {height}" width="100%"'
    said = f'role="img" aria-label={quoteattr(title)}'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} {said}>',
            f"<style>{_STYLE}</style>",
            f'<text class="title" x="{_MARGIN}" y="22">{escape(title)}</text>',
            f'<text id="hint" x="{_MARGIN}" y="42">{_HINT}</text>',
            *_drawn(root, root.micros, _MARGIN, 0),
            f"<script><![CDATA[{_SCRIPT}]]></script>",
            "</svg>\n",
        ]
    )


def _drawn(node: _Node, whole: int, x: float, depth: int) -> Iterator[str]:
    scale = (_WIDTH - 2 * _MARGIN) / whole if whole else 0.0
    width = node.micros * scale if whole else _WIDTH - 2 * _MARGIN
    if width < _NARROWEST:
        return
    y = _TOP + depth * _ROW
    share = f"{100 * node.micros / whole:.2f} %" if whole else "no samples"
    said = escape(f"{node.label} – {node.micros / 1e6:.3f} s, {share}")
    yield (
        f'<g class="frame" data-x="{x:.3f}" data-w="{width:.3f}" data-d="{depth}" '
        f"data-label={quoteattr(node.label)}><title>{said}</title>"
        f'<rect x="{x:.3f}" y="{y}" width="{width:.3f}" height="{_ROW - 1}" rx="2" '
        f'fill="{_colour(node.label, depth)}"/>'
        f'<text x="{x + 4:.3f}" y="{y + 13}">{escape(_fitting(node.label, width))}</text></g>'
    )
    for child in sorted(node.children.values(), key=lambda child: -child.micros):
        yield from _drawn(child, whole, x, depth + 1)
        x += child.micros * scale


def _fitting(label: str, width: float) -> str:
    room = int((width - 8) / _LETTER)
    if room < 3:
        return ""
    return label if len(label) <= room else f"{label[: room - 1]}…"


def _colour(label: str, depth: int) -> str:
    """The same for a label wherever it is: chains green, operators blue, our work grey."""
    shade = zlib.crc32(label.encode()) % 100 / 100
    if label.startswith("["):
        return f"hsl(215 12% {70 + 12 * shade:.0f}%)"
    if depth <= 1:
        return f"hsl(140 35% {72 + 10 * shade:.0f}%)"
    if depth == 2:
        return f"hsl({205 + 15 * shade:.0f} 75% {70 + 8 * shade:.0f}%)"
    return f"hsl({18 + 30 * shade:.0f} 90% {64 + 10 * shade:.0f}%)"


_HINT = "Chains, below them operators, below these functions. Click to zoom, on the top to go back."
_STYLE = (
    "svg{background:#fff}text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#111}"
    ".title{font-size:15px;font-weight:600}#hint{fill:#555}"
    ".frame{cursor:pointer}.frame text{pointer-events:none}"
    ".frame:hover rect{stroke:#111;stroke-width:1}.above rect{opacity:.55}.gone{display:none}"
)
_SCRIPT = f"""
(function () {{
  var left = {_MARGIN}, room = {_WIDTH - 2 * _MARGIN}, letter = {_LETTER};
  var frames = Array.prototype.slice.call(document.querySelectorAll(".frame"));
  var hint = document.getElementById("hint"), usual = hint.textContent;
  function number(frame, name) {{ return parseFloat(frame.getAttribute("data-" + name)); }}
  function place(frame, x, width) {{
    var rect = frame.querySelector("rect"), text = frame.querySelector("text");
    var label = frame.getAttribute("data-label"), fits = Math.floor((width - 8) / letter);
    rect.setAttribute("x", x);
    rect.setAttribute("width", Math.max(width, 0));
    text.setAttribute("x", x + 4);
    text.textContent =
      fits < 3 ? "" : label.length <= fits ? label : label.slice(0, fits - 1) + "\\u2026";
  }}
  function zoom(target) {{
    var x = number(target, "x"), w = number(target, "w"), d = number(target, "d"), slack = 0.002;
    frames.forEach(function (frame) {{
      var fx = number(frame, "x"), fw = number(frame, "w"), fd = number(frame, "d");
      var above = fd < d && fx <= x + slack && fx + fw >= x + w - slack;
      var within = fd >= d && fx >= x - slack && fx + fw <= x + w + slack;
      frame.classList.toggle("gone", !above && !within);
      frame.classList.toggle("above", above);
      if (above) place(frame, left, room);
      else if (within) place(frame, left + (fx - x) * room / w, fw * room / w);
    }});
  }}
  frames.forEach(function (frame) {{
    var said = frame.querySelector("title").textContent;
    frame.addEventListener("click", function () {{ zoom(frame); }});
    frame.addEventListener("mouseover", function () {{ hint.textContent = said; }});
    frame.addEventListener("mouseout", function () {{ hint.textContent = usual; }});
  }});
}})();
"""
