"""Events of an online auction: people, auctions and bids, in NEXMark's proportions.

Numbers are those of the reference configuration of Apache Beam's NEXMark. Everything follows from
the settings: the same ones give the same events. Works in blocks of columns, not event by event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.nexmark.texts import Texts

PERSON, AUCTION, BID = 0, 1, 2
"""Values of the column event_type."""

_PEOPLE, _AUCTIONS, _BIDS = 1, 3, 46
_ROUND = _PEOPLE + _AUCTIONS + _BIDS
"""Events come in rounds: first the person, then the auctions, then the bids."""

FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY = 1000, 1000, 10
_CATEGORIES = 5
_BASE_MILLIS = 1_700_000_000_000
"""When the first event happened; a multiple of every window's size."""

_HOT_AUCTION_RATIO, _HOT_BIDDER_RATIO, _HOT_SELLER_RATIO = 2, 4, 4
"""All but one in so many go to the hot ones."""
_HOT_EVERY = 100
"""One in so many people and auctions is hot for a while: the latest such one."""
_ACTIVE_PEOPLE, _AUCTIONS_IN_FLIGHT = 1000, 100
_LEAD = 10
"""Bids and auctions may name people and auctions that will only come: so many ahead."""

_DELAYED_SHARE = 0.1
MOST_DELAY_MILLIS = 3000
"""A tenth of all events arrive late, by at most so much."""

_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100

SCHEMA = pa.schema(
    [
        ("event_type", pa.int8()),
        ("date_time", pa.int64()),
        ("id", pa.int64()),
        ("name", pa.string()),
        ("email_address", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("item_name", pa.string()),
        ("description", pa.string()),
        ("initial_bid", pa.int64()),
        ("reserve", pa.int64()),
        ("expires", pa.int64()),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("extra", pa.string()),
    ]
)
"""One stream of all events. `id` is a person's or an auction's; times are in milliseconds."""


@dataclass(frozen=True)
class Settings:
    """What events there are."""

    events: int = 1_000_000
    rate: int = 10_000
    """Events per second of event time."""
    seed: int = 1
    block: int = 50_000
    """Events that are made at once."""

    @property
    def blocks(self) -> int:
        return -(-self.events // self.block)


Chosen = Mapping[int, Sequence[str]]
"""Columns by type of event. Others are not made, which leaves those as they are."""
ALL: Chosen = dict.fromkeys((PERSON, AUCTION, BID), SCHEMA.names)


def blocks(settings: Settings, chosen: Chosen = ALL, begin: int = 0) -> Iterator[pa.Table]:
    """The stream in the order of arrival, in parts; a late event may be in a part behind.

    Beginning with a later part, that one lacks whoever is late from before.
    """
    waiting = None
    for number in range(begin, settings.blocks):
        table, arrivals = _block(settings, number, chosen)
        if waiting is not None:
            table = pa.concat_tables([waiting[0], table])
            arrivals = np.concatenate([waiting[1], arrivals])
        order = np.argsort(arrivals, kind="stable")
        until = len(order)
        if number + 1 < settings.blocks:
            end = _time_of(np.int64((number + 1) * settings.block), settings)
            until = int(np.searchsorted(arrivals[order], end))
        table = table.combine_chunks()
        yield table.take(pa.array(order[:until]))
        waiting = table.take(pa.array(order[until:])), arrivals[order[until:]]


def _block(settings: Settings, number: int, chosen: Chosen) -> tuple[pa.Table, np.ndarray]:
    """Events by their number, and when each of them arrives."""
    first = number * settings.block
    numbers = np.arange(first, min(first + settings.block, settings.events), dtype=np.int64)
    place = numbers % _ROUND
    kinds = np.where(place < _PEOPLE, PERSON, np.where(place < _PEOPLE + _AUCTIONS, AUCTION, BID))
    names = [name for name in SCHEMA.names if any(name in asked for asked in chosen.values())]
    parts, arrivals, order = [], [], []
    for kind, asked in chosen.items():
        mine = numbers[kinds == kind]
        times = _time_of(mine, settings)
        rng = np.random.default_rng([settings.seed, number, kind])
        columns = _MAKERS[kind](rng, mine, times, settings)
        columns |= {"event_type": np.full(len(mine), kind, np.int8), "date_time": times}
        texts = Texts([settings.seed, number, kind])
        made = {
            name: column(texts, len(mine)) if callable(column) else column
            for name, column in columns.items()
            if name in asked
        }
        parts.append(pa.table({name: made[name] for name in names if name in made}))
        late = np.where(
            rng.random(len(mine)) < _DELAYED_SHARE,
            rng.integers(1, MOST_DELAY_MILLIS, len(mine), endpoint=True),
            0,
        )
        arrivals.append(times + late)
        order.append(mine)
    # By number again, so that events of one millisecond arrive as they happened.
    by_number = np.argsort(np.concatenate(order))
    schema = pa.schema([SCHEMA.field(name) for name in names])
    table = pa.concat_tables(parts, promote_options="default").select(names).cast(schema)
    return table.take(pa.array(by_number)), np.concatenate(arrivals)[by_number]


def _time_of(numbers: np.ndarray, settings: Settings) -> np.ndarray:
    return _BASE_MILLIS + numbers * 1000 // settings.rate


def _last_person(numbers: np.ndarray) -> np.ndarray:
    """The newest person there is, counted from 0."""
    return numbers // _ROUND


def _last_auction(numbers: np.ndarray) -> np.ndarray:
    """The newest auction there is, counted from 0; for an auction itself."""
    in_round = np.clip(numbers % _ROUND - _PEOPLE, -1, _AUCTIONS - 1)
    return numbers // _ROUND * _AUCTIONS + in_round


def _some_person(rng: np.random.Generator, last: np.ndarray) -> np.ndarray:
    active = np.minimum(last + 1, _ACTIVE_PEOPLE)
    return last + 1 - active + rng.integers(0, active + _LEAD)


def _some_auction(rng: np.random.Generator, last: np.ndarray) -> np.ndarray:
    oldest = np.maximum(last - _AUCTIONS_IN_FLIGHT, 0)
    return oldest + rng.integers(0, last - oldest + 1 + _LEAD)


def _mostly(rng: np.random.Generator, ratio: int, hot: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(rng.integers(0, ratio, len(hot)) > 0, hot, other)


def _prices(rng: np.random.Generator, count: int) -> np.ndarray:
    """Cents, from one dollar to a million; every order of magnitude is as likely."""
    return np.round(10.0 ** (rng.random(count) * 6) * 100).astype(np.int64)


Columns = dict[str, Any]
"""Numbers by column; or how to make a column of text, of so many values."""


def _people(
    rng: np.random.Generator, numbers: np.ndarray, times: np.ndarray, settings: Settings
) -> Columns:
    return {
        "id": _last_person(numbers) + FIRST_PERSON,
        "name": Texts.names,
        "email_address": Texts.emails,
        "credit_card": Texts.credit_cards,
        "city": Texts.cities,
        "state": Texts.states,
        "extra": lambda texts, count: texts.filling(count, _PERSON_BYTES - 80),
    }


def _auctions(
    rng: np.random.Generator, numbers: np.ndarray, times: np.ndarray, settings: Settings
) -> Columns:
    count = len(numbers)
    last = _last_person(numbers)
    seller = _mostly(
        rng, _HOT_SELLER_RATIO, last // _HOT_EVERY * _HOT_EVERY, _some_person(rng, last)
    )
    first_bid = _prices(rng, count)
    # An auction lasts on average until as many others have begun as shall be open at a time.
    horizon = _AUCTIONS_IN_FLIGHT * _ROUND // _AUCTIONS * 1000 // settings.rate
    return {
        "id": _last_auction(numbers) + FIRST_AUCTION,
        "item_name": lambda texts, count: texts.of_length("item", count, 3, 20),
        "description": lambda texts, count: texts.of_length("description", count, 20, 100),
        "initial_bid": first_bid,
        "reserve": first_bid + _prices(rng, count),
        "expires": times + 1 + rng.integers(0, max(horizon * 2, 1), count),
        "seller": seller + FIRST_PERSON,
        "category": FIRST_CATEGORY + rng.integers(0, _CATEGORIES, count),
        "extra": lambda texts, count: texts.filling(count, _AUCTION_BYTES - 120),
    }


def _bids(
    rng: np.random.Generator, numbers: np.ndarray, times: np.ndarray, settings: Settings
) -> Columns:
    last, people = _last_auction(numbers), _last_person(numbers)
    auction = _mostly(
        rng, _HOT_AUCTION_RATIO, last // _HOT_EVERY * _HOT_EVERY, _some_auction(rng, last)
    )
    # The second of its hundred, so that hot bidders are not the hot sellers.
    hot_bidder = people // _HOT_EVERY * _HOT_EVERY + 1
    bidder = _mostly(rng, _HOT_BIDDER_RATIO, hot_bidder, _some_person(rng, people))
    return {
        "auction": auction + FIRST_AUCTION,
        "bidder": bidder + FIRST_PERSON,
        "price": _prices(rng, len(numbers)),
        "channel": Texts.channels,
        "url": Texts.urls,
        "extra": lambda texts, count: texts.filling(count, _BID_BYTES - 32),
    }


_MAKERS = {PERSON: _people, AUCTION: _auctions, BID: _bids}
