"""Where the parts of a drawn plan go: a column per stage, boxes in it, arrows between. Pure.

An arrow that passes stages has a lane in each of them, kept free like a thin box, so that it runs
through none. Boxes and lanes of a column are put in the order of what they are joined with.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.graph.partitioning import ByKey
from penstock.runtime.physical import PhysicalEdge, PhysicalOperator, PhysicalPlan, Vertex

NORMAL, SMALL = 13, 11

_MARGIN = 16
_STAGE_TITLE = 34
_STAGE_PAD = 14
_CHAIN_TITLE = 28
_CHAIN_PAD = 10
_OPERATOR_HEIGHT = 40
_OPERATOR_GAP = 10
_INDENT = 16
_GAP = 18  # between boxes of a column
_LANE = 22
_CURVE = 56  # room for arrows to change their height
_PORT = 22  # between arrows that end at one box
_LONGEST_NAME = 44
_SWEEPS = 8

Point = tuple[float, float]


@dataclass(frozen=True)
class StageColumn:
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True)
class OperatorBox:
    x: float
    y: float
    width: float
    height: float
    name: str
    place: str
    kind: str
    hint: str
    from_above: Point | None
    """Where the line from the operator before it begins, if that is in the same chain."""


@dataclass(frozen=True)
class ChainBox:
    x: float
    y: float
    width: float
    height: float
    title: str
    operators: tuple[OperatorBox, ...]


@dataclass(frozen=True)
class Arrow:
    points: tuple[Point, ...]
    label: str
    label_at: Point
    label_width: float
    feedback: bool


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    stages: tuple[StageColumn, ...]
    chains: tuple[ChainBox, ...]
    arrows: tuple[Arrow, ...]


def text_width(text: str, size: int = NORMAL) -> float:
    """About as wide as common fonts show it: whoever views the drawing has the font, not we."""
    return sum(_width_of(character) for character in text) * size / NORMAL


def _width_of(character: str) -> float:
    if character in "iljI.,:;'|!()[]":
        return 4.0
    if character in "mwMW@%" or ord(character) > 0x2E80:
        return 12.5
    return 9.0 if character.isupper() else 7.4


# Slots: what takes room in a column


@dataclass
class _Slot:
    """A chain, or the lane of an arrow that passes its stage."""

    level: int
    height: float
    width: float
    vertex: Vertex | None = None
    x: float = 0.0
    y: float = 0.0
    before: list[_Slot] = field(default_factory=list)
    after: list[_Slot] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class _Layout:
    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.labels = {edge.index: _label(plan, edge) for edge in plan.edges}
        self.chains = {vertex.index: self._slot_of(vertex) for vertex in plan.vertices}
        self.lanes = {edge.index: self._lanes_of(edge) for edge in plan.edges}
        self.columns: list[list[_Slot]] = [[] for _ in range(plan.levels + 1)]
        for slot in [*self.chains.values(), *(s for lanes in self.lanes.values() for s in lanes)]:
            self.columns[slot.level].append(slot)

    def _slot_of(self, vertex: Vertex) -> _Slot:
        depths = _depths(vertex)
        rows = len(vertex.operators)
        height = _CHAIN_TITLE + rows * _OPERATOR_HEIGHT + (rows - 1) * _OPERATOR_GAP + _CHAIN_PAD
        arriving = len(vertex.inputs) + len(vertex.feedback)
        texts = [
            max(text_width(_name(operator)), text_width(_place(operator), SMALL))
            + depths[number] * _INDENT
            for number, operator in enumerate(vertex.operators)
        ]
        title = text_width(_title(self.plan, vertex), SMALL)
        width = max(max(texts) + 20 + 2 * _CHAIN_PAD, title + 24, 130.0)
        return _Slot(vertex.level, max(height, (arriving + 1) * _PORT), width, vertex)

    def _lanes_of(self, edge: PhysicalEdge) -> list[_Slot]:
        """One for each stage that the arrow passes; and what it joins is made known."""
        if edge.feedback:
            return []
        first, last = self.chains[edge.source], self.chains[edge.target]
        lanes = [_Slot(level, _LANE, 0.0) for level in range(first.level + 1, last.level)]
        for left, right in pairwise([first, *lanes, last]):
            left.after.append(right)
            right.before.append(left)
        return lanes

    # Order and places

    def place(self) -> None:
        for column in self.columns:
            _stack(column)
        for sweep in range(_SWEEPS):
            columns = self.columns if sweep % 2 == 0 else self.columns[::-1]
            for column in columns:
                column.sort(key=lambda slot: _wanted(slot, sweep % 2 == 0))
                _stack(column)
        self._centre()
        self._widen()

    def _centre(self) -> None:
        tallest = max(_bottom(column) for column in self.columns)
        for column in self.columns:
            shift = (tallest - _bottom(column)) / 2
            for slot in column:
                slot.y += shift + _MARGIN + _STAGE_TITLE

    def _widen(self) -> None:
        x = float(_MARGIN)
        for level, column in enumerate(self.columns):
            x += _STAGE_PAD
            width = max(slot.width for slot in column)
            for slot in column:
                slot.x, slot.width = x, width
            x += width + _STAGE_PAD + self._room_after(level)

    def _room_after(self, level: int) -> float:
        """Between the stages, for curves and for the labels of arrows that end behind them."""
        ending = [
            text_width(self.labels[edge.index], SMALL) + 14
            for edge in self.plan.edges
            if not edge.feedback and self.plan.vertices[edge.target].level == level + 1
        ]
        return _CURVE + max(ending, default=0.0)

    # The drawing

    def drawing(self) -> Drawing:
        self.place()
        chains = {index: self._chain(slot) for index, slot in self.chains.items()}
        bottom = max(slot.y + slot.height for slot in self._slots()) + _STAGE_PAD
        right = max(slot.x + slot.width for slot in self._slots()) + _STAGE_PAD
        backward = [edge for edge in self.plan.edges if edge.feedback]
        arrows = [self._arrow(edge, chains) for edge in self.plan.edges if not edge.feedback]
        for number, edge in enumerate(backward):
            arrows.append(self._feedback(edge, chains, bottom + 22 + number * 24))
        below = 34 + (len(backward) - 1) * 24 if backward else 0
        stages = tuple(
            StageColumn(
                column[0].x - _STAGE_PAD,
                _MARGIN,
                column[0].width + 2 * _STAGE_PAD,
                bottom - _MARGIN,
                _stage_title(self.plan, level),
            )
            for level, column in enumerate(self.columns)
        )
        return Drawing(
            round(right + _MARGIN + (24 if backward else 0)),
            round(bottom + _MARGIN + below),
            stages,
            tuple(chains.values()),
            tuple(arrows),
        )

    def _slots(self) -> Iterable[_Slot]:
        return (slot for column in self.columns for slot in column)

    def _chain(self, slot: _Slot) -> ChainBox:
        assert slot.vertex is not None
        vertex = slot.vertex
        depths, parents = _depths(vertex), _parents(vertex)
        boxes: list[OperatorBox] = []
        y = slot.y + _CHAIN_TITLE
        for number, operator in enumerate(vertex.operators):
            indent = depths[number] * _INDENT
            parent = parents[number]
            above = None
            if parent is not None:
                above = (boxes[parent].x + _INDENT / 2, boxes[parent].y + _OPERATOR_HEIGHT)
            boxes.append(
                OperatorBox(
                    slot.x + _CHAIN_PAD + indent,
                    y,
                    slot.width - 2 * _CHAIN_PAD - indent,
                    _OPERATOR_HEIGHT,
                    _name(operator),
                    _place(operator),
                    _kind(vertex, number),
                    _hint(operator),
                    above,
                )
            )
            y += _OPERATOR_HEIGHT + _OPERATOR_GAP
        title = _title(self.plan, vertex)
        return ChainBox(slot.x, slot.y, slot.width, slot.height, title, tuple(boxes))

    def _arrow(self, edge: PhysicalEdge, chains: dict[int, ChainBox]) -> Arrow:
        target = self.chains[edge.target]
        start = self._start(edge, chains)
        end = (target.x, self._port(edge))
        label = self.labels[edge.index]
        width = text_width(label, SMALL) + 14
        label_x = target.x - _STAGE_PAD - width - 6
        points = [start]
        for lane in self.lanes[edge.index]:
            points += [(lane.x - _STAGE_PAD, lane.middle), (lane.x + lane.width, lane.middle)]
        # Level where it leaves the stage, and below its label.
        points[-1:] = [points[-1], (points[-1][0] + _STAGE_PAD + 4, points[-1][1])]
        points += [(label_x, end[1]), end]
        return Arrow(tuple(points), label, (label_x, end[1]), width, False)

    def _feedback(self, edge: PhysicalEdge, chains: dict[int, ChainBox], y: float) -> Arrow:
        """Out at the right, below all stages, and in again from the left."""
        target = self.chains[edge.target]
        start, end = self._start(edge, chains), (target.x, self._port(edge))
        right, left = start[0] + _STAGE_PAD + 14, target.x - 6
        points = (start, (right, start[1]), (right, y), (left, y), (left, end[1]), end)
        label = self.labels[edge.index]
        width = text_width(label, SMALL) + 14
        return Arrow(points, label, ((left + right - width) / 2, y), width, True)

    def _start(self, edge: PhysicalEdge, chains: dict[int, ChainBox]) -> Point:
        """The operator that sends: a chain may branch before its end."""
        for number, operator in enumerate(self.plan.vertices[edge.source].operators):
            if any(output.edge == edge.index for output in operator.outputs):
                box = chains[edge.source].operators[number]
                return box.x + box.width, box.y + box.height / 2
        raise AssertionError(f"no operator of chain {edge.source} sends to edge {edge.index}")

    def _port(self, edge: PhysicalEdge) -> float:
        """Where it ends, at a height of its own; in the order of where they come from."""
        target = self.chains[edge.target]
        arriving = [e for e in self.plan.edges if e.target == edge.target]
        arriving.sort(key=lambda e: (e.feedback, self._comes_from(e), e.index))
        position = arriving.index(edge) - (len(arriving) - 1) / 2
        first = target.y + _CHAIN_TITLE + _OPERATOR_HEIGHT / 2
        middle = first if len(arriving) == 1 else target.middle
        return middle + position * _PORT

    def _comes_from(self, edge: PhysicalEdge) -> float:
        lanes = self.lanes[edge.index]
        return lanes[-1].middle if lanes else self.chains[edge.source].middle


def layout_of(plan: PhysicalPlan) -> Drawing:
    return _Layout(plan).drawing()


def _stack(column: list[_Slot]) -> None:
    y = 0.0
    for slot in column:
        slot.y = y
        y += slot.height + _GAP


def _bottom(column: list[_Slot]) -> float:
    return max(slot.y + slot.height for slot in column)


def _wanted(slot: _Slot, forward: bool) -> float:
    """The height at which its arrows would be level."""
    joined = slot.before if forward else slot.after
    if not joined:
        return slot.middle
    return sum(other.middle for other in joined) / len(joined)


# Words


def _name(operator: PhysicalOperator) -> str:
    name = " ".join(operator.name.split())
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _place(operator: PhysicalOperator) -> str:
    place = os.path.basename(str(operator.location))
    # In short: why it is this lane is in the hint.
    return f"{place} · {operator.lane.partition(',')[0]}" if operator.lane else place


def _hint(operator: PhysicalOperator) -> str:
    lane = f"\n{operator.lane}" if operator.lane else ""
    return f"{operator.name}\nuid {operator.uid}\n{operator.location}{lane}"


def _title(plan: PhysicalPlan, vertex: Vertex) -> str:
    keyed = any(isinstance(plan.edges[index].partitioning, ByKey) for index in vertex.inputs)
    return f"parallelism {vertex.parallelism}" + (", keyed" if keyed else "")


def _stage_title(plan: PhysicalPlan, level: int) -> str:
    tasks = plan.partitions(level)
    return f"Stage {level} · {tasks} task{'' if tasks == 1 else 's'}"


def _label(plan: PhysicalPlan, edge: PhysicalEdge) -> str:
    outputs = (o for op in plan.vertices[edge.source].operators for o in op.outputs)
    tag = next((o.tag for o in outputs if o.edge == edge.index), None)
    several = any(plan.edges[index].input_index for index in plan.vertices[edge.target].inputs)
    into = f"{edge.input_index + 1}: " if several and not edge.feedback else ""
    what = "feedback " if edge.feedback else ""
    return into + what + edge.partitioning.label + (f" of {tag}" if tag else "")


def _kind(vertex: Vertex, number: int) -> str:
    if number == 0 and not vertex.inputs:
        return "source"
    return "operator" if vertex.operators[number].outputs else "sink"


def _parents(vertex: Vertex) -> list[int | None]:
    """Each operator's predecessor within the chain."""
    parents: list[int | None] = [None] * len(vertex.operators)
    for number, operator in enumerate(vertex.operators):
        for output in operator.outputs:
            if output.operator is not None:
                parents[output.operator] = number
    return parents


def _depths(vertex: Vertex) -> list[int]:
    """How far each operator is indented: one step wherever the chain branches."""
    parents = _parents(vertex)
    depths: list[int] = []
    for parent in parents:
        if parent is None:
            depths.append(0)
        else:
            depths.append(depths[parent] + (1 if parents.count(parent) > 1 else 0))
    return depths
