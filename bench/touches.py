"""A job whose state is filled once and then touched here and there, epoch after epoch."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from bench.functions import CountingSink, Remember, number_of
from bench.jobs import PARALLELISM, environment
from bench.measure import Params
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.number_seq import even_ranges


class _Part(NamedTuple):
    """What one split gives: each of its keys once, then `touched` of them in every epoch."""

    first: int
    stop: int
    touched: int
    rounds: int
    payload: int


class _Position(NamedTuple):
    loaded: int
    round: int = 0
    pause: bool = False
    """The next read gives nothing, which ends the epoch."""


class TouchSource(Source):
    def __init__(self, keys: int, touched: int, rounds: int, payload: int) -> None:
        self._keys = keys
        self._touched = touched
        self._rounds = rounds
        self._payload = payload

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        ranges = even_ranges(0, self._keys, parallelism)
        share = self._touched // len(ranges)
        return [
            Split(
                str(number),
                _Part(part.start, part.stop, share, self._rounds, self._payload),
                _Position(part.start),
            )
            for number, part in enumerate(ranges)
        ]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _Reader()


class _Reader(SourceReader):
    def read(self, split: Split, position: _Position, max_records: int) -> ReadResult:
        part: _Part = split.data
        if position.pause:
            return ReadResult([], position._replace(pause=False))
        if position.loaded < part.stop:
            stop = min(part.stop, position.loaded + max_records)
            records = _records(range(position.loaded, stop), part.payload)
            return ReadResult(records, _Position(stop, pause=stop == part.stop))
        # The same keys at every reading: recovery reads again.
        chosen = random.Random(position.round).sample(
            range(part.first, part.stop), min(part.touched, max_records)
        )
        after = position.round + 1
        records = _records(chosen, part.payload)
        return ReadResult(records, _Position(part.stop, after, True), after >= part.rounds)


def _records(keys: Any, payload: int) -> list[tuple[int, bytes]]:
    make = random.Random(0).randbytes
    return [(key, make(payload)) for key in keys]


def touching_job(params: Params, settings: dict[str, str] | None = None) -> Any:
    """The environment with the job in it."""
    env = environment(
        params,
        {
            "state.backend.type": params["backend"],
            "penstock.state.cache-entries": params.get("cache_entries", 200_000),
            "penstock.source.max-records-per-epoch": params.get("load", 125_000),
            "parallelism.default": params.get("parallelism", PARALLELISM),
            **(settings or {}),
        },
    )
    source = TouchSource(params["keys"], params["touched"], params["rounds"], params["payload"])
    stream = env.from_source(source).uid("source").key_by(number_of)
    stream.process(Remember()).uid("remember").add_sink(CountingSink()).uid("sink")
    return env
