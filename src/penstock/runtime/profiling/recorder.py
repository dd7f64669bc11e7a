"""Makes of a task's frames what a profile keeps: for which operator, on what, and the stack.

A chain draws its records from the end, so the frames of an operator lie below those of all that
come after it: the innermost operator is the one at work, and what is above it is not its caller in
any sense that helps a user. Stacks therefore begin anew at each operator's own frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any, Protocol

from penstock.runtime.chain import Composition
from penstock.runtime.profiling.frames import LASTING, OVERRULING, CodeName, name_of
from penstock.runtime.profiling.samples import (
    COORDINATION,
    DECODE,
    HANDING_OVER,
    MOST_FRAMES,
    NOT_WORK,
    OPERATOR,
    ROUTING,
    Spot,
    TaskProfile,
)


class Owners(Protocol):
    """Knows the operators of a task by their frames."""

    def operator_in(self, held: Mapping[str, Any], line: int | None) -> str | None: ...

    def exchange_in(self, held: Mapping[str, Any], line: int | None) -> bool: ...

    def operator_calling(self, code: CodeType) -> str | None: ...


class Recorder:
    """Of one attempt at a task. Its frames begin at that of `root`."""

    def __init__(
        self,
        root: CodeType,
        owners: Callable[[], Iterable[Owners]],
        current: Callable[[], tuple[int, str | None]],
    ) -> None:
        self.profile = TaskProfile()
        self._root = root
        self._owners = owners
        self._current = current
        """The vertex that is worked on, and the uid of its head."""

    def see(self, stack: Sequence[FrameType], micros: int) -> None:
        """The task was found here, and counts as having been for so long. Innermost frame first."""
        self.profile.samples += 1
        self.profile.add(self._spot(stack), micros)

    def _spot(self, stack: Sequence[FrameType]) -> Spot:
        vertex, head = self._current()
        codes = [frame.f_code for frame in stack]
        if self._root not in codes:
            # Others draw from the task, and are not asking now.
            return Spot(vertex, None, HANDING_OVER)
        owners = list(self._owners())
        names: list[CodeName] = []
        owner: str | None = None
        for frame, code, caller in zip(stack, codes, codes[1:], strict=False):
            if code is self._root or owner is not None:
                break
            name = name_of(code)
            owner, of_exchange = _owner(frame, name, name_of(caller), owners)
            names.append(replace(name, kind=ROUTING) if of_exchange else name)
        walk = _Walk(head, owner)
        for name in reversed(names):
            walk.enter(name)
        nobodys = walk.kind in NOT_WORK or walk.kind == COORDINATION
        operator = None if nobodys else walk.operator
        return Spot(vertex, operator, walk.kind, tuple(walk.stack[:MOST_FRAMES]))


def _owner(
    frame: FrameType, name: CodeName, caller: CodeName, owners: list[Owners]
) -> tuple[str | None, bool]:
    """The uid of the operator whose frame it is; whether a loop is at an exchange's line there."""
    if name.telling:
        held, line = _locals(frame), frame.f_lineno
        for known in owners:
            if (operator := known.operator_in(held, line)) is not None:
                return operator, False
        if frame.f_code is Composition.compose.__code__:  # its functions are being opened
            uid = getattr(held.get("described"), "uid", None)
            return uid if isinstance(uid, str) else None, False
        of_exchange = name.kind is None and any(known.exchange_in(held, line) for known in owners)
        return None, of_exchange
    elif not name.ours and caller.ours:
        # Also if something of C stands between the two, which has no frame.
        for known in owners:
            if (operator := known.operator_calling(frame.f_code)) is not None:
                return operator, False
    return None, False


_TELLING_LOCALS = ("self", "call", "emit", "owners", "described")


def _locals(frame: FrameType) -> dict[str, Any]:
    """Those of a frame's locals that may tell whose it is.

    Up to Python 3.12 a frame keeps the dictionary with all of them, and fills it anew when it is
    asked again. Whatever it let go of then could call code of the user's, from within a call that
    reads the frame: so it is emptied at once, unless a debugger is at work there.
    """
    held = frame.f_locals
    found = {name: held[name] for name in _TELLING_LOCALS if name in held}
    if type(held) is dict and frame.f_trace is None:
        held.clear()
    return found


class _Walk:
    """The way inward from an operator's frame, or from the task's."""

    def __init__(self, head: str | None, owner: str | None) -> None:
        self.operator = head if owner is None else owner
        self.kind = COORDINATION if owner is None else OPERATOR
        self.stack: list[str] = []
        self._head = head

    def enter(self, name: CodeName) -> None:
        self._begin(name.kind)
        if not name.ours or self.kind not in _OF_NO_KIND:
            self.stack.append(name.label)

    def _begin(self, kind: str | None) -> None:
        if kind is None or kind == self.kind or self.kind in OVERRULING:
            return
        if self.kind in LASTING and kind not in OVERRULING:
            return
        if self.kind == COORDINATION:
            self.stack.clear()
        if kind == DECODE:
            self.operator = self._head  # whoever draws them: records come in by the head
        self.kind = kind
        self.stack.append(f"[{kind}]")


_OF_NO_KIND = (OPERATOR, COORDINATION)
