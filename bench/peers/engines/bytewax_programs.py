"""The programs as dataflows of Bytewax.

Its clock belongs to a key, and would go on with the machine's between two records; here it stands
still, so that answers depend on the input alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream
from bytewax.operators import StatefulBatchLogic
from bytewax.operators.windowing import (
    EventClock,
    SessionWindower,
    SlidingWindower,
    TumblingWindower,
    fold_window,
)

from bench.peers.functions import (
    GAP_MILLIS,
    NEAR_MILLIS,
    OUT_OF_ORDER_MILLIS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    added,
    average_of,
    class_of,
    counted,
    end_of_window,
    is_warm,
    merged,
    nothing_yet,
    paired,
    prepared,
    sensor_of,
    threshold_of,
    words_of,
)

Streams = dict[str, Stream[Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STILL = datetime(2020, 1, 1, tzinfo=timezone.utc)
_APART_MILLIS = 10_000
"""Inputs and processes are read each at their own pace: none may make the others' records late."""


def map_filter(rows: Streams) -> Stream[Any]:
    return op.filter("warm", op.map("prepare", rows["readings"], prepared), is_warm)


def keyed_count(rows: Streams) -> Stream[Any]:
    return op.key_rm("answer", op.stateful_map("count", _keyed(rows["readings"]), counted))


def word_count(rows: Streams) -> Stream[Any]:
    words = op.flat_map("words", rows["lines"], words_of)
    keyed = op.key_on("word", words, lambda pair: pair[0])
    return op.key_rm("answer", op.stateful_map("count", keyed, _count_word))


def _count_word(count: int | None, pair: tuple[str, int]) -> Any:
    count = (count or 0) + 1
    return count, (pair[0], pair[1], count)


def tumbling(rows: Streams) -> Stream[Any]:
    return _windowed(rows, TumblingWindower(timedelta(milliseconds=SIZE_MILLIS), _EPOCH))


def sliding(rows: Streams) -> Stream[Any]:
    size, slide = timedelta(milliseconds=SIZE_MILLIS), timedelta(milliseconds=SLIDE_MILLIS)
    return _windowed(rows, SlidingWindower(length=size, offset=slide, align_to=_EPOCH))


def sessions(rows: Streams) -> Stream[Any]:
    return _windowed(rows, SessionWindower(timedelta(milliseconds=GAP_MILLIS)))


def _windowed(rows: Streams, windower: Any) -> Stream[Any]:
    clock = EventClock(
        _datetime_of,
        timedelta(milliseconds=OUT_OF_ORDER_MILLIS),
        now_getter=lambda: _STILL,
        to_system_utc=lambda at: None,
    )
    keyed = _keyed(rows["readings"])
    found = fold_window("window", keyed, clock, windower, nothing_yet, added, merged)
    return op.map("average", found.down, lambda pair: average_of(pair[1][1]))


def _datetime_of(reading: Any) -> datetime:
    return datetime.fromtimestamp(reading[1] / 1000, timezone.utc)


def timers(rows: Streams) -> Stream[Any]:
    return op.key_rm(
        "answer", op.stateful_batch("count", _keyed(rows["readings"]), lambda state: _Counts())
    )


class _Counts(StatefulBatchLogic[Any, Any, Any]):
    """Bytewax wakes a key by the machine's time only. So a key's own records move its time on."""

    def __init__(self) -> None:
        self._counts: dict[int, list[Any]] = {}
        self._newest = 0

    def on_batch(self, values: list[Any]) -> Any:
        counts = self._counts
        for sensor, at, _ in values:
            held = counts.get(end := end_of_window(at))
            if held is None:
                counts[end] = [sensor, 1]
            else:
                held[1] += 1
            if at > self._newest:
                self._newest = at
        return self._fired(self._newest - OUT_OF_ORDER_MILLIS), StatefulBatchLogic.RETAIN

    def on_eof(self) -> Any:
        return self._fired(1 << 62), StatefulBatchLogic.DISCARD

    def _fired(self, watermark: int) -> list[Any]:
        due = [end for end in self._counts if end <= watermark]
        return [(held[0], end, held[1]) for end in due for held in (self._counts.pop(end),)]

    def snapshot(self) -> Any:
        return self._counts, self._newest


def interval_join(rows: Streams) -> Stream[Any]:
    sides = [
        op.map_value(f"{name} side", _keyed(rows[name], name), lambda row, left=left: (left, row))
        for name, left in (("left", True), ("right", False))
    ]
    both = op.merge("both", *sides)
    return op.key_rm("answer", op.stateful_batch("join", both, lambda state: _Near()))


class _Near(StatefulBatchLogic[Any, Any, Any]):
    """Bytewax joins by key or by window, not by distance in time: so by hand."""

    def __init__(self) -> None:
        self._lefts: list[Any] = []
        self._rights: list[Any] = []
        self._newest = 0

    def on_batch(self, values: list[Any]) -> Any:
        found = []
        for is_left, row in values:
            at = row[1]
            if is_left:
                self._lefts.append(row)
                found += [
                    paired(row, right)
                    for right in self._rights
                    if at <= right[1] <= at + NEAR_MILLIS
                ]
            else:
                self._rights.append(row)
                found += [
                    paired(left, row) for left in self._lefts if at - NEAR_MILLIS <= left[1] <= at
                ]
            if at > self._newest:
                self._newest = at
        oldest = self._newest - _APART_MILLIS
        if self._lefts and self._lefts[0][1] < oldest:
            self._lefts = [row for row in self._lefts if row[1] >= oldest]
        if self._rights and self._rights[0][1] < oldest:
            self._rights = [row for row in self._rights if row[1] >= oldest]
        return found, StatefulBatchLogic.RETAIN

    def snapshot(self) -> Any:
        return self._lefts, self._rights


def broadcast_rules(rows: Streams) -> Stream[Any]:
    """Bytewax has no state but by key: rules and readings meet by class."""
    readings = op.map("prepare", rows["readings"], prepared)
    by_class = op.key_on("class", readings, lambda row: str(class_of(row[0])))
    rules = op.key_on("class of rule", rows["rules"], lambda row: str(row[0]))
    both = op.merge("both", by_class, rules)
    return op.key_rm("answer", op.stateful_batch("apply", both, lambda state: _Rule()))


class _Rule(StatefulBatchLogic[Any, Any, Any]):
    def __init__(self) -> None:
        self._limit: float | None = None

    def on_batch(self, values: list[Any]) -> Any:
        found = []
        for row in values:
            if isinstance(row[0], int):
                self._limit = row[2]
            else:
                limit = self._limit
                if row[2] >= (threshold_of(class_of(row[0])) if limit is None else limit):
                    found.append(row)
        return found, StatefulBatchLogic.RETAIN

    def snapshot(self) -> Any:
        return self._limit


def _keyed(rows: Stream[Any], name: str = "") -> Stream[Any]:
    prepared_rows = op.map(f"prepare {name}".strip(), rows, prepared)
    return op.key_on(f"sensor {name}".strip(), prepared_rows, sensor_of)
