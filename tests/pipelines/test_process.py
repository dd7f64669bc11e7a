"""process: records one by one, with a context."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError, UserFunctionError


class Spread(ProcessFunction):
    """None, a list, or a generator: all are outputs."""

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        now = ctx.timer_service().current_processing_time()
        assert abs(now - time.time() * 1000) < 120_000
        if value == 0:
            return None
        return [value] * 2 if value == 1 else (n for n in range(value))


class KeyAndValue(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield ctx.get_current_key(), value


def test_process(env: StreamExecutionEnvironment) -> None:
    spread = env.from_elements(0, 1, 3).process(Spread())

    stream = spread.key_by(lambda n: n % 2).process(KeyAndValue())

    assert sorted(stream.execute_and_collect()) == [(0, 0), (0, 2), (1, 1), (1, 1), (1, 1)]


class SetsTimer(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> None:
        ctx.timer_service().register_processing_time_timer(1)


def test_timers_need_a_key(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).process(SetsTimer())

    with pytest.raises(UnsupportedFeatureError, match="Register timers is only supported") as e:
        list(stream.execute_and_collect())
    assert "test_process.py:" in str(e.value)


class Fails(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> None:
        raise LookupError("no such thing")


def test_an_error_inside_a_chain_names_the_operator(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).process(Fails()).name("culprit").map(str).name("behind it")
    with pytest.raises(UserFunctionError, match=r"'culprit \(.*LookupError: no such thing"):
        list(stream.execute_and_collect())


def test_keyed_function_needs_a_key(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidArgumentError, match=r"belongs in key_by\(\.\.\.\)\.process"):
        env.from_elements(1).process(KeyAndValue())
