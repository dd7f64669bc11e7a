"""A job with many pending timers, of which some fire in every third epoch.

Round after round: an epoch that fires the next few, one that registers as many anew behind all
others, one that moves time on without reaching a timer. So as many stay pending, and the fired ones
were stored epochs ago.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.functions import CountingSink
from bench.jobs import PARALLELISM, environment
from bench.measure import Params
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.functions import KeyedProcessFunction

FIRE, REGISTER, NOTHING_DUE = "fire", "register", "nothing due"
STEPS = (FIRE, REGISTER, NOTHING_DUE)

_Order = tuple[int, int, int | None]
"""Key, timestamp, and the time of the timer that it asks for."""

_FIRST = 1_000_000
_STRIDE = 10
"""Between timers, so that time can move on a little without reaching the next."""


class Remind(KeyedProcessFunction):
    """One timer for each record that asks for it."""

    def process_element(self, value: _Order, ctx: KeyedProcessFunction.Context) -> None:
        if value[2] is not None:
            ctx.timer_service().register_event_time_timer(value[2])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        yield timestamp


def key_of(value: _Order) -> int:
    return value[0]


class _Part(NamedTuple):
    """What one split gives. Its timers are those of its number, modulo the number of splits."""

    number: int
    splits: int
    pending: int
    """Of this split, as those below."""
    fired: int


class _Position(NamedTuple):
    registered: int = 0
    step: int = -1
    """Before the first one all timers are registered."""
    pause: bool = False
    """The next read gives nothing, which ends the epoch."""


class TimerSource(Source):
    """Never ends: else all that is pending would fire at last."""

    def __init__(self, pending: int, fired: int) -> None:
        self._pending = pending
        self._fired = fired

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        pending, fired = self._pending // parallelism, self._fired // parallelism
        return [
            Split(str(number), _Part(number, parallelism, pending, fired), _Position())
            for number in range(parallelism)
        ]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _Reader()


class _Reader(SourceReader):
    """All splits go through the same steps, so that they come to the same time together."""

    def read(self, split: Split, position: _Position, max_records: int) -> ReadResult:
        part: _Part = split.data
        registered, step, pause = position
        if pause:
            return ReadResult([], position._replace(pause=False))
        number, kind = divmod(step, len(STEPS))
        fired = part.fired * (number + 1)
        # The watermark is the timestamp less one: it reaches the last timer that is to fire.
        now = _time_of(part.splits * fired - 1) + 1
        if step < 0 or STEPS[kind] == REGISTER:
            stop = min(part.pending + fired, registered + max_records)
            done = stop == part.pending + fired
            records = _registering(part, range(registered, stop), now)
            return ReadResult(records, _Position(stop, step + done, done))
        moving_on = part.number, now + kind, None
        return ReadResult([moving_on], _Position(registered, step + 1, True))


def _time_of(timer: int) -> int:
    return _FIRST + timer * _STRIDE


def _registering(part: _Part, numbers: range, now: int) -> list[_Order]:
    """Timer after timer. A key whose timer has fired gets another."""
    keys = part.pending * part.splits
    timers = [number * part.splits + part.number for number in numbers]
    return [(timer % keys, now, _time_of(timer)) for timer in timers]


def timer_job(params: Params) -> Any:
    """The environment with the job in it."""
    # One more than a step has, so that the pause after it belongs to the same epoch.
    most = max(params["pending"] // 8, params["fired"]) // PARALLELISM + 1
    env = environment(
        params,
        {
            "state.backend.type": params["backend"],
            "penstock.state.cache-entries": params["cache_entries"],
            "penstock.source.max-records-per-epoch": most,
        },
    )
    source = TimerSource(params["pending"], params["fired"])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    (
        env.from_source(source, strategy, "timers")
        .key_by(key_of)
        .process(Remind())
        .add_sink(CountingSink())
    )
    return env
