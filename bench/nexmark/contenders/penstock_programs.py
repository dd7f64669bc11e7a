"""The queries on Penstock: those of `bench.nexmark.queries`, fed by the framework's files."""

from __future__ import annotations

from bench.nexmark.queries.q5 import hot_items
from bench.nexmark.queries.q7 import highest_bids
from bench.nexmark.queries.q8 import new_users
from bench.nexmark.queries.q11 import user_sessions
from bench.nexmark.streams import BY_EVENT_TIME
from penstock.datastream import DataStream

Rows = dict[str, DataStream]


def q5(rows: Rows) -> DataStream:
    return hot_items(_timed(rows["bids"]))


def q7(rows: Rows) -> DataStream:
    return highest_bids(_timed(rows["bids"]))


def q8(rows: Rows) -> DataStream:
    return new_users(_timed(rows["people"]), _timed(rows["auctions"]))


def q11(rows: Rows) -> DataStream:
    return user_sessions(_timed(rows["bids"]))


def _timed(rows: DataStream) -> DataStream:
    return rows.assign_timestamps_and_watermarks(BY_EVENT_TIME)
