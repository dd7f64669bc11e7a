"""The events of the NEXMark benchmark: their proportions, their order, the same ones every time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from bench.nexmark.generator import AUCTION, BID, PERSON, Settings, blocks

_SETTINGS = Settings(events=20_000, rate=1_000, block=6_000)


def test_proportions() -> None:
    kinds = pa.concat_tables(blocks(_SETTINGS))["event_type"].to_numpy()
    counts = {kind: int((kinds == kind).sum()) for kind in (PERSON, AUCTION, BID)}
    assert counts == {PERSON: 400, AUCTION: 1_200, BID: 18_400}


def test_half_of_the_bids_go_to_hot_auctions_and_three_quarters_come_from_hot_bidders() -> None:
    bids = pa.concat_tables(blocks(_SETTINGS, {BID: ("auction", "bidder")}))
    hot = bids["auction"].to_numpy() % 100 == 0
    assert 0.48 < hot.mean() < 0.53
    assert 0.73 < (bids["bidder"].to_numpy() % 100 == 1).mean() < 0.78


def test_a_tenth_arrive_late_by_at_most_three_seconds() -> None:
    times = pa.concat_tables(blocks(_SETTINGS))["date_time"].to_numpy()
    behind = np.maximum.accumulate(times) - times
    assert 2_500 < behind.max() <= 3_000
    assert 0.08 < (behind > 0).mean() < 0.1


def test_the_same_events_whatever_columns_are_made_and_others_by_another_seed() -> None:
    whole = pa.concat_tables(blocks(_SETTINGS)).to_pylist()
    asked = {AUCTION: ("id", "seller", "date_time", "description")}
    some = pa.concat_tables(blocks(_SETTINGS, asked)).to_pylist()
    assert some == [
        {name: event[name] for name in some[0]} for event in whole if event["event_type"] == AUCTION
    ]
    other = Settings(events=20_000, rate=1_000, block=6_000, seed=2)
    assert pa.concat_tables(blocks(other, asked)).to_pylist() != some
