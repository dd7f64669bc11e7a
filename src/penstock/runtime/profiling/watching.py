"""Who looks at a task: a timer of its own thread if it can, else a thread beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from penstock.runtime.profiling.recorder import Recorder
from penstock.runtime.profiling.sampler import sampler
from penstock.runtime.profiling.timer import TimedLooks, can_watch_here


class Watching:
    """Of the thread that makes it, until it calls `end`."""

    def __init__(self, recorder: Recorder, interval: float) -> None:
        self._recorder = recorder
        self._interval = interval
        self.end = self._begun()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While functions are opened, which may claim the signal: a handler of theirs is not to be
        called by our timer."""
        self.end()
        self.end = self._by_thread()
        try:
            yield
        finally:
            self.end()
            self.end = self._begun()

    def _begun(self) -> Callable[[], None]:
        if can_watch_here():
            return TimedLooks(self._recorder, self._interval).stop
        return self._by_thread()

    def _by_thread(self) -> Callable[[], None]:
        found = sampler()
        found.watch(self._recorder, self._interval)
        return partial(found.unwatch, self._recorder)
