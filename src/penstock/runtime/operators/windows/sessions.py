"""Session windows in event time with an incremental function, firing at the watermark.

A key's open sessions are one value: sorted, disjoint, each with what it holds. A timer belongs to a
session but is not moved when the session grows: it looks at the session when it is due, and waits
again if the end has moved. So the usual record costs one look-up and no timer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.datastream.window import MAX_LONG_VALUE, TimeWindow
from penstock.errors import InvalidProgramError
from penstock.runtime.operators.base import OpenOperator, OperatorHost, close_function
from penstock.runtime.operators.windows.evaluation import Evaluation
from penstock.runtime.operators.windows.folding import Fold
from penstock.runtime.operators.windows.lateness import LateRecords
from penstock.runtime.watermarks import WATERMARK, Control
from penstock.state.panes import Serializer
from penstock.state.rewriting import Lift, Rewrite
from penstock.state.windows import check_span

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_SESSION = struct.Struct(">qqq?I")
_NEVER = MAX_LONG_VALUE
_STATE = "_sessions"


class Session:
    """From `start` to `end`, exclusive."""

    __slots__ = ("end", "fired", "held", "start", "timer")

    def __init__(
        self, start: int, end: int, held: Any, timer: int = _NEVER, fired: bool = False
    ) -> None:
        self.start = start
        self.end = end
        self.held = held
        self.timer = timer
        """When it will be looked at."""
        self.fired = fired
        """Whether there was a result since its end last passed the watermark."""


class SessionWindows(OpenOperator):
    """Sessions with a fixed gap."""

    layout = "sessions"

    @staticmethod
    def held(elements: bool) -> dict[str, Lift]:
        """The state in whose entries the contents are, and how they stand there."""
        return {_STATE: _in_sessions}

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        assert host.keyed_state is not None
        self._host = host
        self._scope = host.scope
        self._gap: int = windowing.assigner.gap  # type: ignore[attr-defined]
        self._lateness = windowing.allowed_lateness
        self._combine = windowing.combine
        self._table = host.keyed_state.table(
            _STATE, _sessions_serializer(windowing.contents_type.serializer())
        )
        self._timers = host.keyed_state.timers("_event_timers")
        self._evaluation = Evaluation(windowing, host)
        self._late = LateRecords(windowing, host)
        self._create, self._add, self._merge = Fold.of(windowing.combine, host)
        self.run = self._adding(self._add)

    def process(self, value: Any) -> None:
        self.run((value,))  # type: ignore[misc]

    # Records

    def _adding(self, call: Callable[[Any, Any], Any]) -> Callable[[Iterable[Any]], None]:
        """The loop over records."""
        scope, gap = self._scope, self._gap
        changed, current = self._table.changed, self._table.current

        def run(values: Iterable[Any]) -> None:
            ended_until = self.time.watermark + 1
            try:
                for value in values:
                    timestamp: Any = scope.timestamp
                    end = timestamp + gap
                    key = scope.key
                    sessions = changed.get(key)
                    if sessions is None:
                        sessions = changed[key] = current() or []
                    if sessions:
                        last = sessions[-1]
                        if last.start <= timestamp <= last.end:
                            if end > last.end:
                                last.end = end
                            last.held = call(value, last.held)
                            if last.end <= ended_until or last.fired:
                                self._extended(key, last)
                            continue
                    self._place(value, timestamp, end, key, sessions)
            except TypeError:
                if scope.timestamp is None:
                    raise InvalidProgramError.no_timestamps() from None
                raise

        return run

    def _place(
        self, value: Any, timestamp: int, end: int, key: Any, sessions: list[Session]
    ) -> None:
        """A record that does not just prolong the last session."""
        newest = not sessions or timestamp > sessions[-1].end
        touched = [] if newest else [s for s in sessions if s.start <= end and s.end >= timestamp]
        if not touched and self._is_gone(end):
            if not sessions:
                self._table.changed[key] = None
            if timestamp + self._lateness <= self.time.watermark:
                self._scope.timestamp = timestamp
                self._late.handle(value)
            return
        for other in touched:
            sessions.remove(other)
        if touched:
            session = self._merged(touched)
            session.start, session.end = min(session.start, timestamp), max(session.end, end)
        else:
            check_span(timestamp, end)
            session = Session(timestamp, end, self._create())
        session.held = self._add(value, session.held)
        sessions.append(session)
        if not newest:
            sessions.sort(key=_start)
        self._extended(key, session)

    def _merged(self, touched: list[Session]) -> Session:
        first = touched[0]
        for other in touched[1:]:
            first.held = self._merge(first.held, other.held)
            first.end = max(first.end, other.end)
            first.timer = min(first.timer, other.timer)
        return first

    def _extended(self, key: Any, session: Session) -> None:
        """See to it that it fires: at once if its end has passed, else by a timer."""
        if session.end - 1 <= self.time.watermark:
            self._host.emit_run(self._fired(key, session))
            due = self._cleanup(session)
        else:
            session.fired = False
            due = session.end - 1
        if due < session.timer:
            self._wait(key, session, due)

    def _is_gone(self, end: int) -> bool:
        return end - 1 + self._lateness <= self.time.watermark

    # Time

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self.time.watermark = time
            self._host.emit_run(self._due(time))
        self.pass_on(control)

    def next_timer(self, until: int) -> int | None:
        return self._timers.first(until)

    def _due(self, until: int) -> Iterator[Any]:
        for time, key, _ in self._timers.due(until):
            yield from self._looked_at(time, key)

    def _looked_at(self, time: int, key: Any) -> Iterator[Any]:
        """A timer is due: of one of the key's sessions, or of one that was merged away."""
        self._scope.key = key
        sessions: list[Session] = self._table.current() or []
        over = []
        for session in sessions:
            if session.timer != time:
                continue
            session.timer = _NEVER
            if session.end - 1 > time:
                self._wait(key, session, session.end - 1)
                continue
            if not session.fired:
                yield from self._fired(key, session)
            if self._cleanup(session) <= time:
                over.append(session)
            else:
                self._wait(key, session, self._cleanup(session))
        for session in over:
            self._scope.key = key
            self._evaluation.clear(TimeWindow(session.start, session.end))
            sessions.remove(session)
        self._table.changed[key] = sessions or None

    def _cleanup(self, session: Session) -> int:
        return min(session.end - 1 + self._lateness, MAX_LONG_VALUE)

    def _wait(self, key: Any, session: Session, time: int) -> None:
        session.timer = time
        self._scope.key = key
        self._timers.register(time)

    def _fired(self, key: Any, session: Session) -> Iterator[Any]:
        session.fired = True
        window = TimeWindow(session.start, session.end)
        return self._evaluation.results(window, ((key, session.held),))

    def parts(self) -> tuple[Any, ...]:
        return self, self._evaluation

    def close(self) -> None:
        self._evaluation.close()
        close_function(self._combine)


def _start(session: Session) -> int:
    return session.start


def _sessions_serializer(contents: Serializer) -> Serializer:
    dumps, loads = contents

    def dump(sessions: list[Session]) -> bytes:
        parts = []
        for s in sessions:
            held = dumps(s.held)
            parts.append(_SESSION.pack(s.start, s.end, s.timer, s.fired, len(held)))
            parts.append(held)
        return b"".join(parts)

    def load(raw: bytes) -> list[Session]:
        sessions, at = [], 0
        while at < len(raw):
            start, end, timer, fired, length = _SESSION.unpack_from(raw, at)
            at += _SESSION.size + length
            sessions.append(Session(start, end, loads(raw[at - length : at]), timer, fired))
        return sessions

    return dump, load


def _in_sessions(rewrite: Rewrite) -> Rewrite:
    """The same for a key's sessions as for what each of them holds."""
    dump, load = _sessions_serializer((rewrite, lambda raw: raw))
    return lambda raw: dump(load(raw))
