"""The queries by name. Each is a module of its own: what it asks, and the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bench.nexmark.queries import (
    q0,
    q1,
    q2,
    q3,
    q4,
    q5,
    q6,
    q7,
    q8,
    q9,
    q11,
    q12,
    q18,
    q20,
)
from bench.nexmark.streams import Streams
from penstock.datastream import DataStream

Answer = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Query:
    """A program, and how its outputs are an answer that can be compared."""

    build: Callable[[Streams], DataStream]
    settled: Callable[[Iterable[Any]], Any] = sorted
    by_the_clock: bool = False
    """Whether it needs an input that ends later than its last event."""


QUERIES: dict[str, Query] = {
    "q0": Query(q0.build),
    "q1": Query(q1.build),
    "q2": Query(q2.build),
    "q3": Query(q3.build),
    "q4": Query(q4.build, q4.settled),
    "q5": Query(q5.build),
    "q6": Query(q6.build, q6.settled),
    "q7": Query(q7.build),
    "q8": Query(q8.build),
    "q9": Query(q9.build),
    "q11": Query(q11.build),
    "q12": Query(q12.build, q12.settled, by_the_clock=True),
    "q18": Query(q18.build, q18.settled),
    "q20": Query(q20.build),
}
