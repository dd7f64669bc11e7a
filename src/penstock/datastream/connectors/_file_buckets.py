"""Which directory below a sink's path a record goes to."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.datastream.connectors.base import WriterContext
from penstock.errors import InvalidArgumentError

__all__ = ["BucketAssigner"]

# Letters of Java's patterns, by how often they stand in a row.
_FIELDS: dict[str, Callable[[dt.datetime], str]] = {
    "yyyy": lambda t: f"{t.year:04d}",
    "uuuu": lambda t: f"{t.year:04d}",
    "yy": lambda t: f"{t.year % 100:02d}",
    "uu": lambda t: f"{t.year % 100:02d}",
    "MM": lambda t: f"{t.month:02d}",
    "M": lambda t: str(t.month),
    "dd": lambda t: f"{t.day:02d}",
    "d": lambda t: str(t.day),
    "DDD": lambda t: f"{t.timetuple().tm_yday:03d}",
    "HH": lambda t: f"{t.hour:02d}",
    "H": lambda t: str(t.hour),
    "mm": lambda t: f"{t.minute:02d}",
    "m": lambda t: str(t.minute),
    "ss": lambda t: f"{t.second:02d}",
    "s": lambda t: str(t.second),
    "SSS": lambda t: f"{t.microsecond // 1000:03d}",
}
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


class BucketAssigner:
    """Names the bucket of each record. Subclass it, or use a ready-made one."""

    def get_bucket_id(self, element: Any, context: WriterContext) -> str:
        """A relative path such as ``2024-01-31/eu``; an empty one is the sink's own directory."""
        raise NotImplementedError

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """No buckets: all files in the sink's own directory."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """A bucket for each hour, or what a pattern of Java's makes of the processing time."""
        return _DateTime(format_str, timezone_id)


class _BasePath(BucketAssigner):
    def get_bucket_id(self, element: Any, context: WriterContext) -> str:
        return ""


class _DateTime(BucketAssigner):
    def __init__(self, pattern: str, zone: str | None) -> None:
        self._pattern = pattern
        self._zone = _zone(zone)
        self._parts = _parts(pattern)
        self._last = (-1, "")

    def get_bucket_id(self, element: Any, context: WriterContext) -> str:
        now = context.current_processing_time()
        if now != self._last[0]:
            self._last = now, self._bucket(now)
        return self._last[1]

    def _bucket(self, millis: int) -> str:
        then = dt.datetime.fromtimestamp(millis / 1000, dt.timezone.utc).astimezone(self._zone)
        return "".join(p if isinstance(p, str) else p(then) for p in self._parts)

    def __getstate__(self) -> dict[str, Any]:
        return {"_pattern": self._pattern, "_zone": self._zone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _parts=_parts(state["_pattern"]), _last=(-1, ""))


def _zone(name: str | None) -> dt.tzinfo | None:
    """None: where the task runs."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidArgumentError.of(
            "timezone_id", "a time zone such as 'Europe/Berlin' or 'UTC'", name
        ) from None


def _parts(pattern: str) -> list[str | Callable[[dt.datetime], str]]:
    def refuse() -> NoReturn:
        raise InvalidArgumentError.of(
            "format_str", f"a date pattern of {' '.join(_FIELDS)} and 'quoted' text", pattern
        )

    if not isinstance(pattern, str) or not pattern:
        refuse()
    parts: list[str | Callable[[dt.datetime], str]] = []
    at = 0
    while at < len(pattern):
        found = _PATTERN.match(pattern, at)
        if found is None:
            refuse()
        at = found.end()
        if found[1] is not None:
            parts.append(found[1].replace("''", "'") or "'")
        elif found[2] is None:
            parts.append(found[0])
        elif found[0] in _FIELDS:
            parts.append(_FIELDS[found[0]])
        else:
            refuse()
    return parts


def checked_bucket(bucket: Any) -> str:
    """A bucket id that names a directory below the sink's own."""
    if not isinstance(bucket, str):
        raise InvalidArgumentError.of("a bucket id", "a string", bucket)
    steps = bucket.split("/") if bucket else []
    if os.path.isabs(bucket) or "\0" in bucket or any(step in ("", ".", "..") for step in steps):
        raise InvalidArgumentError.of("a bucket id", "a relative path within the sink's", bucket)
    return bucket
