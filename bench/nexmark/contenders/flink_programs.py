"""The queries in PyFlink, with declared types, which are quicker there than pickled values.

They are those of `bench.nexmark.queries` but for the window join of q8, which PyFlink lacks: there
both streams are united, and a window looks for its person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream
from pyflink.datastream.functions import AggregateFunction, ProcessWindowFunction
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

from bench.nexmark.answers import GAP_MILLIS, OUT_OF_ORDER_MILLIS, SLIDE_MILLIS, WINDOW_MILLIS
from bench.peers.engines import pyflink_job

_GROUPS = 64
# A type that has been used once cannot be pickled with a function any more: each its own.
_LONG, _ANY = Types.LONG, Types.PICKLED_BYTE_ARRAY

_WINDOW = Time.milliseconds(WINDOW_MILLIS)
_SLIDE = Time.milliseconds(SLIDE_MILLIS)

Rows = dict[str, DataStream]


def run(params: dict[str, Any]) -> dict[str, Any]:
    # What the order calls so is Penstock's program.
    found: dict[str, Any] = pyflink_job.run({**params, "flink": params["pyflink"]})
    return found


def _longs(count: int) -> Any:
    return Types.TUPLE([_LONG() for _ in range(count)])


def _user() -> Any:
    return Types.TUPLE([_LONG(), Types.STRING(), _LONG()])


class TimeOfEvent(TimestampAssigner):
    def __init__(self, field: int) -> None:
        self._field = field

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time: int = value[self._field]
        return time


def _timed(rows: DataStream, field: int) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MILLIS)
    ).with_timestamp_assigner(TimeOfEvent(field))
    return rows.assign_timestamps_and_watermarks(strategy)


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithAuctionAndEnd(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        for count in elements:
            yield context.window().end, key, count


class Hottest(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0, ()

    def add(self, value: Any, accumulator: Any) -> Any:
        end, auction, count = value
        _, most, auctions = accumulator
        if count > most:
            return end, count, (auction,)
        return (end, most, (*auctions, auction)) if count == most else accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        if acc_a[1] == acc_b[1]:
            return acc_a[0], acc_a[1], acc_a[2] + acc_b[2]
        return max(acc_a, acc_b, key=lambda held: held[1])


def q5(rows: Rows) -> DataStream:
    counts = (
        _timed(rows["bids"], 1)
        .key_by(lambda bid: bid[0], key_type=_LONG())
        .window(SlidingEventTimeWindows.of(_WINDOW, _SLIDE))
        .aggregate(Count(), WithAuctionAndEnd(), accumulator_type=_LONG(), output_type=_longs(3))
    )
    hottest = (
        counts.key_by(lambda hot: hot[0], key_type=_LONG())
        .window(TumblingEventTimeWindows.of(_SLIDE))
        .aggregate(Hottest(), accumulator_type=_ANY(), output_type=_ANY())
    )
    return hottest.flat_map(
        lambda hot: [(hot[0], auction, hot[1]) for auction in hot[2]], output_type=_ANY()
    )


class HighestBids(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, ()

    def add(self, value: Any, accumulator: Any) -> Any:
        price = value[2]
        highest, bids = accumulator
        if price < highest:
            return accumulator
        bid = tuple(value)
        return (highest, (*bids, bid)) if price == highest else (price, (bid,))

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        if acc_a[0] == acc_b[0]:
            return acc_a[0], acc_a[1] + acc_b[1]
        return max(acc_a, acc_b)


class HighestOfAll(HighestBids):
    def add(self, value: Any, accumulator: Any) -> Any:
        return self.merge(accumulator, value)


def q7(rows: Rows) -> DataStream:
    highest = (
        _timed(rows["bids"], 3)
        .key_by(lambda bid: bid[0] % _GROUPS, key_type=_LONG())
        .window(TumblingEventTimeWindows.of(_WINDOW))
        .aggregate(HighestBids(), accumulator_type=_ANY(), output_type=_ANY())
        .window_all(TumblingEventTimeWindows.of(_WINDOW))
        .aggregate(HighestOfAll(), accumulator_type=_ANY(), output_type=_ANY())
    )
    return highest.flat_map(lambda found: found[1], output_type=_ANY())


class NewUser(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        people, sells = [], False
        for _, name, _ in elements:
            if name:
                people.append(name)
            else:
                sells = True
        if sells:
            for name in people:
                yield key, name, context.window().start


def q8(rows: Rows) -> DataStream:
    # An auction is a record without a name.
    auctions = rows["auctions"].map(lambda auction: (auction[0], "", auction[1]), _user())
    people = rows["people"].map(tuple, _user())
    return (
        _timed(people, 2)
        .union(_timed(auctions, 2))
        .key_by(lambda user: user[0], key_type=_LONG())
        .window(TumblingEventTimeWindows.of(_WINDOW))
        .process(NewUser(), output_type=_user())
    )


class Session(ProcessWindowFunction):
    """Counts at the end: in PyFlink 2.3 `aggregate` loses one side where two sessions merge."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, sum(1 for _ in elements), window.start, window.end


def q11(rows: Rows) -> DataStream:
    return (
        _timed(rows["bids"], 1)
        .key_by(lambda bid: bid[0], key_type=_LONG())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MILLIS)))
        .process(Session(), output_type=_longs(4))
    )
