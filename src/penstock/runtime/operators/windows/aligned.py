"""Tumbling and sliding windows in event time that fire once the watermark passes their end.

All keys have the same windows, so the operator finds what is due by the windows' start: it keeps
neither timers nor trigger state, and a record costs a dict look-up for each of its windows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.datastream.window import TimeWindow
from penstock.errors import InvalidProgramError
from penstock.runtime.codec import constant, own_copy
from penstock.runtime.operators.base import OpenOperator, OperatorHost, close_function
from penstock.runtime.operators.windows.evaluation import Evaluation
from penstock.runtime.operators.windows.folding import Fold
from penstock.runtime.operators.windows.lateness import LateRecords
from penstock.runtime.watermarks import WATERMARK, Control
from penstock.state.keys import encode_key
from penstock.state.panes import ElementPanes, PaneTable, in_element_panes, in_panes
from penstock.state.rewriting import Lift
from penstock.state.windows import check_span

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_STATE = "_windows"
_RECORD = "a record that goes into several windows"

Add = Callable[[Any, Any], Any]


class AlignedWindows(OpenOperator):
    """Windows at multiples of the slide, all of one size."""

    layout = "tumbling or sliding windows"

    @staticmethod
    def held(elements: bool) -> dict[str, Lift]:
        """The state in whose entries the contents are, and how they stand there."""
        return {_STATE: in_element_panes if elements else in_panes}

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        assigner: Any = windowing.assigner
        self._size: int = assigner.size
        self._slide: int = getattr(assigner, "slide", assigner.size)
        self._offset: int = assigner.offset
        self._lateness = windowing.allowed_lateness
        self._host = host
        self._combine = windowing.combine
        self._merge: Add
        self._table, self._create, add = self._contents(windowing, host)
        # Else a function that changes a record in one window would change it in the others.
        self._hand_out_copies = windowing.combine is None and self._is_used_again()
        self._evaluation = Evaluation(windowing, host)
        self._late = LateRecords(windowing, host)
        self._ends: list[int] = []
        """Starts of the windows that have not fired, the first at the front."""
        self._cleanups: list[int] = []
        """Starts of those that have fired and wait for late records."""
        self._known = False
        self.run = self._adding(add)
        self._add = add

    def process(self, value: Any) -> None:
        self.run((value,))  # type: ignore[misc]

    def _contents(
        self, windowing: Windowing, host: OperatorHost
    ) -> tuple[PaneTable, Callable[[], Any], Add]:
        """Where contents are kept, what a window holds at first, how a record is added."""
        keyed_state = host.keyed_state
        assert keyed_state is not None
        serializer = windowing.contents_type.serializer()
        if windowing.combine is None:
            elements = keyed_state.element_panes(_STATE, serializer)
            return elements, list, _appending(elements)
        fold = Fold.of(windowing.combine, host)
        self._merge = fold.merge
        add = _adding_copies(fold.add) if self._panes_of_a_record() > 1 else fold.add
        return keyed_state.panes(_STATE, serializer), fold.create, add

    def _panes_of_a_record(self) -> int:
        return -(-self._size // self._slide)

    def _is_used_again(self) -> bool:
        """Whether a record is looked at more than once."""
        return self._panes_of_a_record() > 1 or self._lateness > 0

    # Records

    def _adding(self, call: Add) -> Callable[[Iterable[Any]], None]:
        """The loop over records."""
        scope, slide, offset = self._host.scope, self._slide, self._offset
        held_by = _nothing_yet if self._combine is None else self._held
        # Then the windows of a record depend on more than the start of its newest one.
        uneven = self._size % slide != 0

        def run(values: Iterable[Any]) -> None:
            newest: int | None = None
            panes: list[tuple[int, dict[Any, Any]]] = []
            ended: list[int] = []
            known: dict[int, tuple[list[tuple[int, dict[Any, Any]]], list[int]]] = {}
            try:
                for value in values:
                    timestamp: Any = scope.timestamp
                    start = timestamp - (timestamp - offset) % slide
                    if start != newest or uneven:
                        newest = start
                        found = known.get(start)  # out of order, one start alternates with another
                        if found is None or uneven:
                            found = known[start] = self._windows_of(timestamp, start)
                        panes, ended = found
                    key = scope.key
                    for begin, changed in panes:
                        held = changed.get(key)
                        if held is None:
                            held = held_by(begin, changed, key)
                        changed[key] = call(value, held)
                    if not panes or ended:
                        self._add_late(value, timestamp, key, ended, bool(panes))
            except TypeError:
                if scope.timestamp is None:
                    raise InvalidProgramError.no_timestamps() from None
                raise

        return run

    def _windows_of(
        self, timestamp: int, newest: int
    ) -> tuple[list[tuple[int, dict[Any, Any]]], list[int]]:
        """The contents of a timestamp's windows, and the starts of those that have ended."""
        ended_until = self._ended_until(self.time.watermark)
        panes: list[tuple[int, dict[Any, Any]]] = []
        ended = []
        for start in range(newest, timestamp - self._size, -self._slide):
            if start <= ended_until:
                ended.append(start)
            else:
                panes.append((start, self._pane(start)))
        return panes, ended

    def _ended_until(self, watermark: int) -> int:
        """The start of the last window that has ended at a watermark, if there is one."""
        return watermark - self._size + 1

    def _pane(self, start: int) -> dict[Any, Any]:
        """The changed contents of a window, which is made if it is new."""
        self._know()
        found = self._table.panes.get(start)
        if found is None:
            check_span(start, start + self._size)
            found = self._table.pane(start)
            self._begun(start)
        return found.changed

    def _begun(self, start: int) -> None:
        """There is a new pane."""
        self._expect(start)

    def _held(self, start: int, changed: dict[Any, Any], key: Any) -> Any:
        """What a key's window holds, if it was not changed in this epoch."""
        if key in changed:
            return changed[key]
        found = self._table.find(start, key)
        return self._create() if found is None else found

    def _add_late(
        self, value: Any, timestamp: int, key: Any, ended: list[int], added: bool
    ) -> None:
        """A record some of whose windows have ended: those that still wait fire again at once."""
        gone_until = self._ended_until(self.time.watermark) - self._lateness
        for start in ended:
            if start > gone_until:
                added = True
                changed = self._pane(start)
                changed[key] = self._add(value, self._held(start, changed, key))
                self._fire(start, [(key, self._held_by(start, key))])
        if not added and timestamp + self._lateness <= self.time.watermark:
            self._host.scope.timestamp = timestamp
            self._late.handle(value)

    # Time

    def _know(self) -> None:
        """Find out which windows are open, once per instance."""
        if not self._known:
            self._known = True
            for start in self._open_windows():
                self._expect(start)

    def _open_windows(self) -> Iterable[int]:
        """The starts of all windows that have contents."""
        return self._table.panes

    def _expect(self, start: int) -> None:
        """A window is to fire, or if it has ended already, to be cleaned up."""
        ended = start <= self._ended_until(self.time.watermark)
        heapq.heappush(self._cleanups if ended else self._ends, start)

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self._know()
            self.time.watermark = time
            self._advance(self._ended_until(time))
        self.pass_on(control)

    def resume(self, control: Control) -> None:
        super().control(control)

    def next_timer(self, until: int) -> int | None:
        self._know()
        waits = ((self._ends, 0), (self._cleanups, self._lateness))
        times = [starts[0] + self._size - 1 + longer for starts, longer in waits if starts]
        first = min(times, default=None)
        return first if first is not None and first <= until else None

    def _advance(self, ended_until: int) -> None:
        waiting = self._ends
        while waiting and waiting[0] <= ended_until:
            start = heapq.heappop(waiting)
            # In the order of time: what was over before this one ended is cleared before it fires.
            self._drop_until(start - 1)
            contents = self._all_held(start)
            if self._host.in_order:  # otherwise keys come as epochs have left them in the table
                contents = sorted(contents, key=lambda held: encode_key(held[0]))
            self._fire(start, contents)
            heapq.heappush(self._cleanups, start)
        self._drop_until(ended_until)

    def _drop_until(self, ended_until: int) -> None:
        cleanups = self._cleanups
        while cleanups and cleanups[0] <= ended_until - self._lateness:
            self._drop(heapq.heappop(cleanups))

    def _fire(self, start: int, contents: Iterable[tuple[Any, Any]]) -> None:
        window = TimeWindow(start, start + self._size)
        self._host.emit_run(self._evaluation.results(window, contents))

    def _drop(self, start: int) -> None:
        if self._evaluation.clears:
            window, scope = TimeWindow(start, start + self._size), self._host.scope
            for scope.key, _ in self._all_held(start):
                self._evaluation.clear(window)
        self._forget(start)

    # What windows hold

    def _all_held(self, start: int) -> Iterable[tuple[Any, Any]]:
        """Every key of a window, with what the window holds of it."""
        contents = self._table.contents(start)
        if self._hand_out_copies:
            return ((key, _copies(elements)) for key, elements in contents)
        return contents

    def _held_by(self, start: int, key: Any) -> Any:
        held = self._table.of_key(start, key)
        return _copies(held) if self._hand_out_copies else held

    def _forget(self, start: int) -> None:
        self._table.drop(start)

    def parts(self) -> tuple[Any, ...]:
        return self, self._evaluation

    def close(self) -> None:
        self._evaluation.close()
        close_function(self._combine)


def _nothing_yet(start: int, changed: dict[Any, Any], key: Any) -> list[Any]:
    """What a key gathers of a window beside what is stored, which is only read when that ends."""
    return []


def _appending(table: ElementPanes) -> Add:
    def add(value: Any, held: list[Any]) -> list[Any]:
        held.append(value)
        table.added += 1
        return held

    return add


def _adding_copies(call: Add) -> Add:
    """For records that go into several windows, where the user's function may change them."""

    def add(value: Any, held: Any) -> Any:
        return call(own_copy(value, _RECORD), held)

    return add


def _copies(elements: list[Any]) -> list[Any]:
    return elements if constant(elements) else [own_copy(e, _RECORD) for e in elements]
