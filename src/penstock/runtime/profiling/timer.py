"""Looks at a task from within its own thread, when a timer of the process goes off.

The interpreter calls the handler between two steps of the main thread, wherever that is: unlike a
thread of its own, which needs the interpreter's lock and gets it where the task gives it away, it
finds no place more often than the task is there. Reading a store gives the lock away for every
value. A signal that comes during a long call of C is handled behind it, and counts for all of it.

Timer and signal are the process's only ones of their kind. Once code of the user's has used either,
they are its own.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from types import FrameType

from penstock.runtime.profiling.recorder import Recorder

_OFF = (0.0, 0.0)
_taken = False
"""Whether somebody else has a use for the timer."""


def can_watch_here() -> bool:
    """Whether this is the main thread, and nobody else has a use for the timer."""
    if _taken or not _in_main_thread():
        return False
    handler = signal.getsignal(signal.SIGALRM)
    free = handler is signal.SIG_DFL or _is_ours(handler)
    return free and signal.getitimer(signal.ITIMER_REAL) == _OFF


class TimedLooks:
    """From now on until `stop`."""

    def __init__(self, recorder: Recorder, interval: float) -> None:
        self._recorder = recorder
        signal.signal(signal.SIGALRM, self._look)
        # What the task calls goes on by itself, where the system can have it so.
        signal.siginterrupt(signal.SIGALRM, False)
        # Tasks may be shorter than the interval: each of their moments must be as likely.
        first = interval * (1 - random.random())
        self._last = time.perf_counter() - (interval - first)
        signal.setitimer(signal.ITIMER_REAL, first, interval)

    def stop(self) -> None:
        global _taken
        ours = _is_ours(signal.getsignal(signal.SIGALRM))
        if not ours or signal.getitimer(signal.ITIMER_REAL) == _OFF:
            _taken = True
        if not ours:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        if _in_main_thread():  # else it stays, and is called no more
            # A signal that is under way must not meet the default, which ends the process.
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _look(self, _: int, frame: FrameType | None) -> None:
        try:
            now = time.perf_counter()
            micros, self._last = int((now - self._last) * 1_000_000), now
            stack = []
            while frame is not None:
                stack.append(frame)
                frame = frame.f_back
            self._recorder.see(stack, micros)
        except Exception:
            return  # it would be raised in the user's function


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_ours(handler: object) -> bool:
    return getattr(handler, "__func__", None) is TimedLooks._look
