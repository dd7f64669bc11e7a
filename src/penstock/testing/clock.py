"""A clock that stands still until it is told to move."""

from __future__ import annotations

from penstock.common.time import Span, to_millis
from penstock.errors import InvalidArgumentError


class ManualClock:
    """Milliseconds; starts at 0 unless told otherwise and never goes back."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, by: Span) -> int:
        """Move on by some milliseconds or a duration; the new time."""
        return self.set(self._now + to_millis(by, "the time to advance by"))

    def set(self, to: int) -> int:
        """Move on to a time; the new time."""
        if not isinstance(to, int) or isinstance(to, bool) or to < self._now:
            raise InvalidArgumentError.of("the new time", f"an int of at least {self._now}", to)
        self._now = to
        return to

    def __repr__(self) -> str:
        return f"ManualClock({self._now})"
