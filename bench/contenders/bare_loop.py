"""No engine: one loop in one process on one core, with a dict for state and no durability."""

from __future__ import annotations

import os
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench import data
from bench.functions import CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.measure import Params, Result
from penstock.datastream.state import ValueState
from penstock.metrics import MetricGroup


class _Scope:
    """The current key, for state and context alike."""

    __slots__ = ("key",)

    key: Any

    def get_current_key(self) -> Any:
        return self.key


class _DictState(ValueState[Any]):
    def __init__(self, scope: _Scope) -> None:
        self._scope = scope
        self._values: dict[Any, Any] = {}

    def value(self) -> Any:
        return self._values.get(self._scope.key)

    def update(self, value: Any) -> None:
        self._values[self._scope.key] = value

    def clear(self) -> None:
        self._values.pop(self._scope.key, None)


class _Context:
    """As much of a runtime context as the functions ask for."""

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope

    def get_state(self, descriptor: Any) -> _DictState:
        return _DictState(self._scope)

    def get_metrics_group(self) -> MetricGroup:
        return MetricGroup()


def run(params: Params) -> Result:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    scope = _Scope()
    context: Any = _Context(scope)
    to_fahrenheit, count_and_sum, sink = ToFahrenheit(), CountAndSum(), CountingSink()
    for function in (to_fahrenheit, count_and_sum, sink):
        function.open(context)
    change, process, invoke = to_fahrenheit.map, count_and_sum.process_element, sink.invoke
    sink_context: Any = None
    ends, busy = [time.perf_counter()], [time.process_time()]
    for path in data.files_of(params["input"], params["files"]):
        for row in rows_of(path):
            value = change(row)
            scope.key = sensor_of(value)
            for out in process(value, scope):  # type: ignore[arg-type]
                invoke(out, sink_context)
        ends.append(time.perf_counter())
        busy.append(time.process_time())
    rows = sink.taken()
    cold = params["cold_epochs"] * params["files_per_epoch"]
    warm = (len(ends) - 1 - cold) * data.ROWS_PER_FILE
    return {
        "outputs": rows,
        "seconds": ends[-1] - ends[0],
        "rate": rows / (ends[-1] - ends[0]),
        "warm_rate": warm / (ends[-1] - ends[cold]),
        "cpu_micros": (busy[-1] - busy[cold]) / warm * 1e6,
    }


def rows_of(path: str) -> Any:
    """Tuples, by the quickest way that pyarrow has: numbers without gaps over numpy."""
    table = pq.read_table(path, use_threads=False)
    sensors, times, temperatures = table.columns
    return zip(
        sensors.to_pylist(),
        times.to_numpy().tolist(),
        temperatures.to_numpy().tolist(),
        strict=True,
    )
