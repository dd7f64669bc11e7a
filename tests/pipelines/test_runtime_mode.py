"""execution.runtime-mode: what AUTOMATIC means, on jobs that end and jobs that do not."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from penstock.datastream import RuntimeExecutionMode
from penstock.datastream.connectors.datagen import DataGeneratorSource

ONES = [("a", 1), ("a", 1), ("b", 1), ("a", 1)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("STREAMING", [("a", 1), ("a", 2), ("a", 3), ("b", 1)]),
        ("BATCH", [("a", 3), ("b", 1)]),
        ("AUTOMATIC", [("a", 3), ("b", 1)]),
    ],
)
def test_of_a_source_that_ends(make_env: Any, mode: str, expected: list[Any]) -> None:
    env = make_env({"execution.runtime-mode": mode})
    assert sorted(env.from_collection(ONES).key_by(0).sum(1).execute_and_collect()) == expected


def test_automatic_with_a_source_that_does_not_end(env: Any) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    endless = env.from_source(DataGeneratorSource(lambda i: ("e", 1), rate=100))
    counts = env.from_collection(ONES).union(endless).key_by(0).sum(1)
    found = []
    with counts.execute_and_collect() as results:
        while len(found) < 4:
            found += [r for r in islice(results, 1) if r[0] != "e"]
    assert sorted(found) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
