from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from penstock.datastream import functions
from penstock.datastream.functions import (
    AsyncRetryStrategy,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunctionWrapper,
    SinkFunction,
    SourceFunction,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError


class Double(MapFunction):
    def map(self, value: int) -> int:
        return value * 2


class Keep(SinkFunction):
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.seen.append(value)


def test_a_function_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Double())).map(4) == 8
    assert pickle.loads(pickle.dumps(Keep([1]))).seen == [1]


def test_unpickling_a_function_loads_neither_driver_nor_spark() -> None:
    program = (
        "import sys\n"
        "from penstock.datastream import MapFunction\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'pyarrow')\n"
        "          or m.startswith(('penstock.driver', 'penstock.runtime', 'penstock.plan'))]\n"
        "print(loaded)"
    )
    source_root = functions.__file__.rpartition("/penstock/")[0]
    loaded = subprocess.check_output(
        [sys.executable, "-c", program], env={"PYTHONPATH": source_root}, text=True
    )
    assert loaded.strip() == "[]"


def test_on_timer_is_optional() -> None:
    class Silent(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None: ...

    assert Silent().on_timer(0, None) is None  # type: ignore[arg-type]


def test_abstract_methods_are_demanded() -> None:
    with pytest.raises(TypeError, match="process_element"):
        ProcessFunction()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", [SourceFunction, SinkFunction])
def test_java_classes_are_refused(kind: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"org\.Some.*in Python"):
        kind("org.Some")


def test_reduce_wrapper() -> None:
    assert ReduceFunctionWrapper(max).reduce(3, 5) == 5


def test_exponential_backoff_grows_to_its_maximum() -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(10_000, 100, 1000, 2.0)
    delays = [strategy.get_backoff_time_millis(n) for n in (1, 2, 3, 4, 5, 9999)]
    assert delays == [100, 200, 400, 800, 1000, 1000]
    assert [strategy.can_retry(n) for n in (1, 10_000, 10_001)] == [True, True, False]


def test_retry_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="max_attempts"):
        AsyncRetryStrategy.fixed_delay(0, 10)
    with pytest.raises(InvalidArgumentError, match="at least initial_delay"):
        AsyncRetryStrategy.exponential_backoff(1, 100, 50, 2.0)


def test_every_exported_name_exists() -> None:
    assert [name for name in functions.__all__ if not hasattr(functions, name)] == []
