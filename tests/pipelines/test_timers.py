"""Row B6: timers in event and processing time, per key, checkpointed, fired in order of time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import WatermarkStrategy
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeDomain,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import UserFunctionError

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(0).with_timestamp_assigner(
    lambda record, _: record[1]
)


class RisesForASecond(KeyedProcessFunction):
    """Alerts when a sensor's temperature has risen for a second without a fall."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))
        self._timer = runtime_context.get_state(ValueStateDescriptor("timer"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        before, timer = self._last.value(), self._timer.value()
        self._last.update(value[2])
        if before is None or value[2] < before:
            if timer is not None:
                ctx.timer_service().delete_event_time_timer(timer)
                self._timer.clear()
        elif timer is None:
            at = ctx.timestamp() + 1000
            ctx.timer_service().register_event_time_timer(at)
            self._timer.update(at)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        assert ctx.timestamp() == timestamp
        assert ctx.timer_service().current_watermark() >= timestamp
        self._timer.clear()
        yield ctx.get_current_key(), timestamp


READINGS = [
    # sensor, time, temperature: "a" rises from 100 on, "b" falls in between
    ("a", 0, 20.0),
    ("b", 0, 20.0),
    ("a", 100, 21.0),
    ("b", 200, 21.0),
    ("b", 700, 19.0),
    ("a", 900, 22.0),
    ("b", 1000, 20.0),
    ("a", 1500, 23.0),
    ("b", 1600, 19.5),
]
ALERTS = [("a", 1100)]


@pytest.mark.parametrize("records", [1, 3, 100])
def test_alert_if_the_temperature_rises_for_a_second(make_env: Any, records: int) -> None:
    env = make_env({"penstock.source.max-records-per-epoch": str(records)})
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(BOUNDED)

    alerts = readings.key_by(lambda r: r[0]).process(RisesForASecond()).execute_and_collect()

    assert sorted(alerts) == ALERTS


class AllAtTheEnd(KeyedProcessFunction):
    """One timer per record, far ahead."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(1_000_000 - value[1])
        ctx.timer_service().register_event_time_timer(1_000_000 - value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


def test_the_end_of_input_fires_every_timer_once_in_order(env: StreamExecutionEnvironment) -> None:
    records = [(n % 3, n) for n in range(60)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(BOUNDED)

    fired = list(stream.key_by(lambda r: r[0]).process(AllAtTheEnd()).execute_and_collect())

    assert sorted(fired) == sorted((key, 1_000_000 - n) for key, n in records)
    for key in range(3):
        times = [time for found, time in fired if found == key]
        assert times == sorted(times)


def test_timers_and_watermarks_outlive_a_failure(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def stream(fails_at: int) -> Any:
        def check(record: Any) -> Any:
            if record[1] == fails_at:
                raise ValueError("now")
            return record

        env = restartable_env({"penstock.source.max-records-per-epoch": "4"})
        timed = env.from_collection(READINGS).uid("s").map(check).uid("check")
        timed = timed.assign_timestamps_and_watermarks(BOUNDED).uid("time")
        return timed.key_by(lambda r: r[0]).process(RisesForASecond()).uid("rises")

    before, error = collect_until_error(stream(fails_at=1600))
    assert "now" in str(error)
    assert sorted(before + list(stream(fails_at=-1).execute_and_collect())) == ALERTS


class FailsOnTimer(AllAtTheEnd):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        raise LookupError("no such thing")


def test_an_error_in_on_timer_names_the_operator(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(BOUNDED)
    keyed = stream.key_by(lambda r: r[0]).process(FailsOnTimer()).name("reminder")
    with pytest.raises(UserFunctionError, match=r"'reminder \(.*LookupError: no such thing"):
        list(keyed.execute_and_collect())
