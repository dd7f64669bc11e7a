"""Iterations as they are declared: what can be closed with what."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import IterativeStream, StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_is_a_stream_and_gives_the_feedback_back(env: StreamExecutionEnvironment) -> None:
    loop = env.from_collection([1], Types.INT()).iterate()
    body = loop.map(lambda n: n, Types.INT())
    assert isinstance(loop, IterativeStream)
    assert loop.get_type() == Types.INT()
    assert loop.close_with(body) is body
    assert isinstance(loop.name("Loop").uid("loop"), IterativeStream)
    assert loop.get_name() == "Loop"


def test_not_made_from_it(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_elements(1)
    loop, other = numbers.iterate(), numbers.iterate()
    with pytest.raises(
        InvalidArgumentError,
        match=r"begins at .*test_iterative_stream\.py:\d+ must be closed with",
    ):
        loop.close_with(other.map(lambda n: n))
    connected = numbers.iterate().with_feedback_type(Types.INT())
    with pytest.raises(InvalidArgumentError, match="made from it"):
        connected.close_with(other.map(lambda n: n))


def test_another_environment(env: StreamExecutionEnvironment) -> None:
    other = StreamExecutionEnvironment.get_execution_environment().from_elements(1)
    with pytest.raises(InvalidArgumentError, match="the iteration's environment"):
        env.from_elements(1).iterate().close_with(other)


def test_with_itself(env: StreamExecutionEnvironment) -> None:
    loop = env.from_elements(1).iterate()
    with pytest.raises(InvalidArgumentError, match="round for ever"):
        loop.close_with(loop)
    with pytest.raises(InvalidArgumentError, match="round for ever"):
        loop.close_with(loop.rebalance())


def test_of_another_type(env: StreamExecutionEnvironment) -> None:
    loop = env.from_collection([1], Types.INT()).iterate()
    texts = loop.map(str, Types.STRING())
    with pytest.raises(InvalidArgumentError, match=r"with_feedback_type\(\.\.\.\)"):
        loop.close_with(texts)
    loop.close_with(loop.map(lambda n: n))  # nobody said of what type


def test_feedback_of_another_type_than_was_said(env: StreamExecutionEnvironment) -> None:
    loop = env.from_elements(1).iterate().with_feedback_type(Types.STRING())
    assert loop.stream2.get_type() == Types.STRING()
    numbers = loop.stream1.map(lambda n: n, Types.INT())
    with pytest.raises(InvalidArgumentError, match="takes back String"):
        loop.close_with(numbers)


@pytest.mark.parametrize("feedback", [None, [1]])
def test_not_a_stream(env: StreamExecutionEnvironment, feedback: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a DataStream"):
        env.from_elements(1).iterate().close_with(feedback)


@pytest.mark.parametrize("wait", [-1, 1.5, "1 s"])
def test_bad_wait(env: StreamExecutionEnvironment, wait: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_wait_time_millis"):
        env.from_elements(1).iterate(wait)
