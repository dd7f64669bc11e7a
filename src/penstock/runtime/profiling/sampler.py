"""The thread that looks at profiled tasks of this process now and then, where no timer can.

It needs the interpreter's lock to look, so a task is found where it gave the lock away. It would do
that by itself wherever it waits for something, and for 5 ms nowhere else, which makes waiting look
more frequent than it is; so the lock is asked for sooner while tasks are watched.

For the same reason the lock may be lost between any two lines here. Frames of a thread that runs
meanwhile are not safe to walk, so a whole stack is taken in one call, by iterators of C.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, repeat, starmap
from operator import getitem
from types import FrameType
from typing import Any

from penstock.runtime.profiling.recorder import Recorder

_SWITCH_SECONDS = 0.0002
_LONGEST_REST_SECONDS = 5.0


class Sampler:
    """Of one process. Its thread ends when there has been nothing to watch for a while."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[Recorder, float]] = {}
        self._wanted = threading.Event()
        self._running = False

    def watch(self, recorder: Recorder, interval: float) -> None:
        """Look at the calling thread from now on."""
        with self._lock:
            self._watched[threading.get_ident()] = (recorder, interval)
            self._wanted.set()
            if not self._running:
                self._running = True
                threading.Thread(target=self._main, name="penstock profile", daemon=True).start()

    def unwatch(self, recorder: Recorder) -> None:
        """After this nothing is added to it."""
        with self._lock:
            for thread, (watched, _) in list(self._watched.items()):
                if watched is recorder:
                    del self._watched[thread]

    def _main(self) -> None:
        while self._awaited():
            before = sys.getswitchinterval()
            sys.setswitchinterval(min(before, _SWITCH_SECONDS))
            try:
                self._sample()
            except BaseException:
                self._running = False  # the next task has a thread started again
                raise
            finally:
                sys.setswitchinterval(before)

    def _awaited(self) -> bool:
        """Wait until there is something to watch; false if there is nothing for long."""
        self._wanted.wait(_LONGEST_REST_SECONDS)
        with self._lock:
            self._running = bool(self._watched)
            return self._running

    def _sample(self) -> None:
        interval = self._interval()
        # Tasks may be shorter than the interval: each of their moments must be as likely.
        time.sleep(interval * random.random())
        last = time.perf_counter() - interval
        while True:
            now = time.perf_counter()
            with self._lock:
                if not self._watched:
                    self._wanted.clear()
                    return
                self._look(int((now - last) * 1_000_000))
            last = now
            time.sleep(interval)

    def _interval(self) -> float:
        with self._lock:
            return min((interval for _, interval in self._watched.values()), default=0.01)

    def _look(self, micros: int) -> None:
        with _without_collector():
            for thread, (recorder, _) in self._watched.items():
                if stack := stack_of(thread):
                    recorder.see(stack, micros)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Up to Python 3.11 it may begin within any call of C that makes an object, and call Python
    code: the lock may then be lost with a frame half looked at."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


_getattr: Any = getattr  # its types are too many for a checker


def stack_of(thread: int) -> list[FrameType]:
    """The frames of a thread, the innermost first; none if it has ended."""
    found: list[Any] = []
    innermost = map(getitem, starmap(sys._current_frames, [()]), repeat(thread))
    # What `getattr` makes of a frame and a name, of the result and the next name, and so on.
    outward: Iterable[Any] = accumulate(chain(innermost, repeat("f_back")), _getattr)
    with contextlib.suppress(AttributeError, KeyError):  # None has no `f_back`
        found.extend(outward)
    while found and found[-1] is None:
        found.pop()
    return found


_sampler: Sampler | None = None
_making = threading.Lock()


def sampler() -> Sampler:
    """This process's own: one that was forked has none yet."""
    global _sampler
    with _making:
        if _sampler is None or _sampler.process != os.getpid():
            _sampler = Sampler()
        return _sampler
