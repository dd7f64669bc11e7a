"""q8, monitor new users: people who came and opened an auction in the same 10 seconds.

Person, name, and the beginning of those 10 seconds; once, however many auctions it were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Duration
from penstock.datastream import DataStream
from penstock.datastream.window import TumblingEventTimeWindows

SIZE = Duration.of_seconds(10)


def newcomers(people: Iterable[Any], auctions: Iterable[Any]) -> Iterator[tuple[int, str, int]]:
    """Of one person and window."""
    if any(True for _ in auctions):
        for person, name, time in people:
            yield person, name, time - time % SIZE.to_millis()


def new_users(people: DataStream, auctions: DataStream) -> DataStream:
    return (
        people.co_group(auctions)
        .where(lambda person: person[0])
        .equal_to(lambda auction: auction[0])
        .window(TumblingEventTimeWindows.of(SIZE))
        .apply(newcomers)
    )


def build(streams: Streams) -> DataStream:
    people = streams.people("id", "name", event_time=True)
    return new_users(people, streams.auctions("seller", event_time=True))
