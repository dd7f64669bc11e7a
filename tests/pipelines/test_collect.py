"""execute_and_collect: results as they come; closing early ends the job."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.data_stream import CloseableIterator
from penstock.errors import InvalidArgumentError


def _endless(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_source(DataGeneratorSource(lambda i: i, rate=2000)).map(lambda i: i * 2)


def _await_end_of(job_name: str) -> None:
    """Each job has a thread of its own on the driver."""
    deadline = time.monotonic() + 60
    while any(thread.name == f"penstock {job_name}" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, f"{job_name} goes on"
        time.sleep(0.02)


def test_iterator_and_limit(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 100)

    results = stream.execute_and_collect()
    assert isinstance(results, CloseableIterator)
    first = results.next()
    assert sorted([first, *results]) == list(range(1, 101))
    results.close()
    assert list(results) == []

    few = stream.execute_and_collect("a few", limit=7)
    assert len(few) == 7
    assert set(few) <= set(range(1, 101))
    _await_end_of("a few")
    with pytest.raises(InvalidArgumentError, match="limit must be a positive int"):
        stream.execute_and_collect(limit=0)


def test_closed_early_on_an_endless_source(env: StreamExecutionEnvironment) -> None:
    with _endless(env).execute_and_collect("endless") as results:
        assert all(next(results) % 2 == 0 for _ in range(20))
    _await_end_of("endless")

    assert len(_endless(env).execute_and_collect("limited", limit=5)) == 5
    _await_end_of("limited")
