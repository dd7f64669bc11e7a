"""Where a source begins to read, if that is not its beginning."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from penstock.errors import InvalidArgumentError


@dataclass(frozen=True)
class StartFrom:
    """A position, as the source counts, or a point in time. Made by `position` and `timestamp`."""

    at_position: int | None = None
    at_millis: int | None = None

    @staticmethod
    def position(position: int) -> StartFrom:
        """What the source calls a position: the index of a record, an offset."""
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise InvalidArgumentError.of(
                "the position to start from", "an int from 0 on", position
            )
        return StartFrom(at_position=position)

    @staticmethod
    def timestamp(timestamp: int | dt.datetime) -> StartFrom:
        """Milliseconds since 1970 in UTC, or a datetime; one without a zone is in UTC."""
        if isinstance(timestamp, dt.datetime):
            zoned = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=dt.timezone.utc)
            return StartFrom(at_millis=int(zoned.timestamp() * 1000))
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            raise InvalidArgumentError.of(
                "the timestamp to start from", "milliseconds or a datetime", timestamp
            )
        return StartFrom(at_millis=timestamp)

    @staticmethod
    def parse(text: str) -> StartFrom:
        """`42` is a position, `2026-11-01T08:00:00Z` and `@1793520000000` are timestamps."""
        text = text.strip()
        try:
            if text.startswith("@"):
                return StartFrom.timestamp(int(text[1:]))
            if text.isdigit():
                return StartFrom.position(int(text))
            return StartFrom.timestamp(dt.datetime.fromisoformat(text.replace("Z", "+00:00")))
        except ValueError:
            raise InvalidArgumentError.of(
                "where to start from",
                "a position (42), a time (2026-11-01T08:00:00Z) or milliseconds (@1793520000000)",
                text,
            ) from None

    def __str__(self) -> str:
        if self.at_millis is None:
            return f"position {self.at_position}"
        found = dt.datetime.fromtimestamp(self.at_millis / 1000, dt.timezone.utc)
        return f"timestamp {found.isoformat()}"
