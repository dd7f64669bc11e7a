"""Chaining: operators joined by a forward edge run in one task, unless told otherwise."""

from __future__ import annotations

import json

import pytest

from penstock.datastream import DataStream, StreamExecutionEnvironment


def _chains(env: StreamExecutionEnvironment) -> list[list[str]]:
    """The names of the operators, chain by chain."""
    chains: dict[int, list[str]] = {}
    for node in json.loads(env.get_execution_plan())["nodes"]:
        chains.setdefault(node["chain"], []).append(node["type"].removeprefix("Sink: "))
    return list(chains.values())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda b: b, [["source", "a", "b", "c", "Print"]]),
        (DataStream.start_new_chain, [["source", "a"], ["b", "c", "Print"]]),
        (DataStream.disable_chaining, [["source", "a"], ["b"], ["c", "Print"]]),
        (lambda b: b.set_parallelism(3), [["source", "a"], ["b"], ["c", "Print"]]),
    ],
    ids=["default", "start_new_chain", "disable_chaining", "parallelism"],
)
def test_chains_shown(
    env: StreamExecutionEnvironment, change: object, expected: list[list[str]]
) -> None:
    source = env.from_sequence(1, 3).name("source")
    change(source.map(str).name("a").map(str).name("b")).map(str).name("c").print()

    assert _chains(env) == expected
    text = env.explain()
    assert all(" -> ".join(chain) in text.replace("Sink: ", "") for chain in expected)


def test_disabled_for_the_job(env: StreamExecutionEnvironment) -> None:
    env.disable_operator_chaining()
    env.from_sequence(1, 3).name("source").map(str).name("a").print()

    assert not env.is_chaining_enabled()
    assert _chains(env) == [["source"], ["a"], ["Print"]]


def test_results_do_not_depend_on_chains(env: StreamExecutionEnvironment) -> None:
    one = env.from_sequence(1, 10)
    cut = one.map(lambda n: n + 1).start_new_chain().map(lambda n: n * 2).disable_chaining()

    assert sorted(cut.map(str).execute_and_collect(), key=int) == [
        str((n + 1) * 2) for n in range(1, 11)
    ]
