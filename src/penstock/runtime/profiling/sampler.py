"""The thread that looks at profiled tasks of this process now and then.

It needs the interpreter's lock to look, so a task is found where it gave the lock away. It would do
that by itself wherever it waits for something, and for 5 ms nowhere else, which makes waiting look
more frequent than it is; so the lock is asked for sooner while tasks are watched.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

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
        frames = sys._current_frames()
        for thread, (recorder, _) in self._watched.items():
            frame = frames.get(thread)
            if frame is not None:
                recorder.see(frame, micros)


_sampler: Sampler | None = None
_making = threading.Lock()


def sampler() -> Sampler:
    """This process's own: one that was forked has none yet."""
    global _sampler
    with _making:
        if _sampler is None or _sampler.process != os.getpid():
            _sampler = Sampler()
        return _sampler
