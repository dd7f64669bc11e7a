"""Makes of a task's frames what a profile keeps: for which operator, on what, and the stack.

A chain draws its records from the end, so the frames of an operator lie below those of all that
come after it: the innermost operator is the one at work, and what is above it is not its caller in
any sense that helps a user. Stacks therefore begin anew at each operator's own frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Protocol

from penstock.runtime.profiling.frames import LASTING, OVERRULING, CodeName, name_of
from penstock.runtime.profiling.samples import (
    COORDINATION,
    DECODE,
    HANDING_OVER,
    MOST_FRAMES,
    NOT_WORK,
    OPERATOR,
    Spot,
    TaskProfile,
)


class Owners(Protocol):
    """Knows the operators of a task by their frames."""

    def operator_in(self, frame: FrameType) -> str | None: ...

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

    def see(self, innermost: FrameType, micros: int) -> None:
        """The task was found here, and counts as having been for so long."""
        self.profile.samples += 1
        self.profile.add(self._spot(innermost), micros)

    def _spot(self, innermost: FrameType) -> Spot:
        vertex, head = self._current()
        frames = self._frames(innermost)
        if frames is None:
            return Spot(vertex, None, HANDING_OVER)
        walk = _Walk(head)
        owners = list(self._owners())
        for frame in frames:
            walk.enter(frame, owners)
        nobodys = walk.kind in NOT_WORK or walk.kind == COORDINATION
        operator = None if nobodys else walk.operator
        return Spot(vertex, operator, walk.kind, tuple(walk.stack[:MOST_FRAMES]))

    def _frames(self, innermost: FrameType) -> list[FrameType] | None:
        """From the task's own frame inward; None if it is not at work, since others draw from it
        and are not asking now."""
        found: list[FrameType] = []
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code is self._root:
                found.reverse()
                return found
            found.append(frame)
            frame = frame.f_back
        return None


class _Walk:
    """The way from the task's frame to the innermost one."""

    def __init__(self, head: str | None) -> None:
        self.operator = head
        self.kind = COORDINATION
        self.stack: list[str] = []
        self._head = head
        self._only_ours = True
        """Whether no frame of the user's has come since the last of an operator."""

    def enter(self, frame: FrameType, owners: list[Owners]) -> None:
        name = name_of(frame.f_code)
        owner = self._owner(frame, name, owners)
        if owner is not None:
            self.operator, self.kind, self.stack = owner, OPERATOR, []
            self._only_ours = True
        self._begin(name.kind)
        if not name.ours or (owner is None and self.kind not in _OF_NO_KIND):
            self.stack.append(name.label)
        self._only_ours = self._only_ours and name.ours

    def _owner(self, frame: FrameType, name: CodeName, owners: list[Owners]) -> str | None:
        if name.telling:
            for known in owners:
                if (operator := known.operator_in(frame)) is not None:
                    return operator
            if frame.f_code.co_name == "_compose":  # its functions are being opened
                uid = getattr(frame.f_locals.get("described"), "uid", None)
                return uid if isinstance(uid, str) else None
        elif self._only_ours and not name.ours:
            # Called by something of C, which has no frame.
            for known in owners:
                if (operator := known.operator_calling(frame.f_code)) is not None:
                    return operator
        return None

    def _begin(self, kind: str | None) -> None:
        if kind is None or kind == self.kind or self.kind in OVERRULING:
            return
        if self.kind in LASTING and kind not in OVERRULING:
            return
        if self.kind in _OF_NO_KIND:
            self.stack = [label for label in self.stack if self.kind == OPERATOR]
        if kind == DECODE:
            self.operator = self._head  # whoever draws them: records come in by the head
        self.kind = kind
        self.stack.append(f"[{kind}]")


_OF_NO_KIND = (OPERATOR, COORDINATION)
