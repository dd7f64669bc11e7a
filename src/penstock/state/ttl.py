"""Time to live: a stored value carries the time of its last use, eight bytes before its own.

Times are processing times in milliseconds, as in Flink. Expired values are removed when they are
met, and by a sweep that looks at a few key groups of the store in each epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.datastream.state import StateTtlConfig


class Stamped(NamedTuple):
    """A value and when it was last used."""

    value: Any
    at: int


class Lifetime:
    """The rules of one StateTtlConfig against a clock."""

    def __init__(self, config: StateTtlConfig, now: Callable[[], int]) -> None:
        self._millis = config.ttl_millis
        self._renew_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._show_expired = (
            config.get_state_visibility()
            is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        )
        self._now = now

    def stamp(self, value: Any) -> Stamped:
        return Stamped(value, self._now())

    def expired(self, stamped: Stamped) -> bool:
        return self._now() - stamped.at >= self._millis

    def expired_raw(self, raw: bytes) -> bool:
        return self._now() - int.from_bytes(raw[:8], "big") >= self._millis

    def read(self, stamped: Stamped) -> tuple[Any, Stamped | None, bool]:
        """What the reader sees, what is to be kept (None: nothing), and whether that is new."""
        if self.expired(stamped):
            return (stamped.value if self._show_expired else None), None, True
        if self._renew_on_read:
            return stamped.value, self.stamp(stamped.value), True
        return stamped.value, stamped, False


def stamped_serializer(
    dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
) -> tuple[Callable[[Stamped], bytes], Callable[[bytes], Stamped]]:
    def dump(stamped: Stamped) -> bytes:
        return stamped.at.to_bytes(8, "big") + dumps(stamped.value)

    def load(raw: bytes) -> Stamped:
        return Stamped(loads(raw[8:]), int.from_bytes(raw[:8], "big"))

    return dump, load
