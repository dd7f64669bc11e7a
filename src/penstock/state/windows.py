"""Windows as bytes, under which state and timers of a window are stored."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from penstock.datastream.window import CountWindow, GlobalWindow, TimeWindow
from penstock.errors import InvalidArgumentError
from penstock.state.timers import MAX_TIME, MIN_TIME, TIMES, time_bytes, time_of

TIME_WINDOW, COUNT_WINDOW, GLOBAL_WINDOW, _OTHER = b"t", b"c", b"g", b"p"
_ID = struct.Struct(">q")


def check_span(start: int, end: int) -> None:
    """Refuse a window that begins before all time or ends after it: it would never be over."""
    if start < MIN_TIME or end > MAX_TIME:
        raise InvalidArgumentError(
            f"a record's window must be {TIMES}, got {TimeWindow(start, end)!r}; see that the "
            "timestamp assigner gives a real time"
        )


def window_bytes(window: Any) -> bytes:
    cls = window.__class__
    if cls is TimeWindow:
        try:
            return b"".join((TIME_WINDOW, time_bytes(window.start), time_bytes(window.end)))
        except OverflowError:
            check_span(window.start, window.end)
            raise
    if cls is GlobalWindow:
        return GLOBAL_WINDOW
    if cls is CountWindow:
        return COUNT_WINDOW + _ID.pack(window.id)
    return _OTHER + pickle.dumps(window, 5)


def window_of(data: bytes) -> Any:
    kind = data[:1]
    if kind == TIME_WINDOW:
        return TimeWindow(time_of(data[1:9]), time_of(data[9:]))
    if kind == GLOBAL_WINDOW:
        return GlobalWindow.get()
    if kind == COUNT_WINDOW:
        return CountWindow(_ID.unpack(data[1:])[0])
    return pickle.loads(data[1:])
