"""The environment: settings, execute, plans, several jobs of one program."""

from __future__ import annotations

import json

import pytest

from penstock.common import Configuration, JobExecutionResult
from penstock.datastream import (
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.spark_interface import set_local_slots
from penstock.errors import InvalidArgumentError, InvalidProgramError, UnsupportedFeatureError


def test_settings(env: StreamExecutionEnvironment) -> None:
    assert env.get_parallelism() == 2
    assert env.get_max_parallelism() == -1

    more = Configuration()
    more.set_string("parallelism.default", "3")
    env.configure(more)
    assert env.get_parallelism() == 3
    assert env.set_parallelism(4).get_parallelism() == 4
    assert env.set_max_parallelism(64).get_max_parallelism() == 64
    with pytest.raises(InvalidArgumentError, match="parallelism must be a positive int, got int 0"):
        env.set_parallelism(0)
    with pytest.raises(InvalidArgumentError, match="a RuntimeExecutionMode, got str 'BATCH'"):
        env.set_runtime_mode("BATCH")
    typo = Configuration()
    typo.set_string("penstock.job_id", "x")
    with pytest.raises(InvalidArgumentError, match=r"did you mean 'penstock\.job-id'"):
        env.configure(typo)


class Subtask(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> int:
        return self._subtask


def test_default_parallelism_is_that_of_the_engine(
    env: StreamExecutionEnvironment, executor: str
) -> None:
    configuration = Configuration()
    configuration.set_string("penstock.executor", executor)
    made = StreamExecutionEnvironment.get_execution_environment(configuration)

    assert made.get_parallelism() >= 1
    if executor == "spark":
        assert made.get_parallelism() == 2  # the tests' session is local[2]

    try:
        env.set_default_local_parallelism(3)
        assert made.get_parallelism() == 3
        assert len(set(made.from_sequence(1, 9).map(Subtask()).execute_and_collect())) == 3
    finally:
        set_local_slots(None)


def test_execute(env: StreamExecutionEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    """What was run is not run again by the next execute."""
    env.set_parallelism(1)
    source = env.from_elements(1, 2)
    source.map(lambda n: n * 10).print("first")
    result = env.execute("ten times")
    assert isinstance(result, JobExecutionResult)
    assert result.get_net_runtime() > 0
    assert capfd.readouterr().out == "first> 10\nfirst> 20\n"

    source.map(lambda n: -n).print("second")
    env.execute()
    assert capfd.readouterr().out == "second> -1\nsecond> -2\n"


def test_nothing_to_run(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1, 2).map(str)

    with pytest.raises(InvalidProgramError, match=r"no sink; add one \(print\(\)"):
        env.execute()


def test_plans(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1, 2).key_by(lambda n: n).sum().name("total").uid("total").print()

    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["type"] for node in nodes] == [
        "Source: Collection Source",
        "total",
        "Sink: Print",
    ]
    assert [node["parallelism"] for node in nodes] == [1, 2, 2]
    assert nodes[1]["predecessors"][0]["ship_strategy"] == "HASH"
    assert "test_environment.py" in nodes[1]["location"]
    assert "uid total" in env.explain()
    assert "HASH" in env.explain("mermaid")


def test_uids_can_be_demanded(env: StreamExecutionEnvironment) -> None:
    """Of every operator that a user can call uid on; what Penstock adds itself has its own."""
    env.get_config().disable_auto_generated_uids()
    source = env.from_elements(1, 2).uid("numbers")
    doubled = source.map(lambda n: 2 * n).name("double")

    with pytest.raises(InvalidProgramError, match=r"'double' \(.*test_environment.py:\d+\) has no"):
        doubled.execute_and_collect()
    doubled.uid("double")
    assert sorted(doubled.execute_and_collect()) == [2, 4]
    assert sorted(source.union(doubled.key_by(str)).execute_and_collect()) == [1, 2, 2, 4]
    keys_and_values = source.key_by(lambda n: -n).execute_and_collect()
    assert sorted(tuple(row) for row in keys_and_values) == [(-2, 2), (-1, 1)]

    printed = source.print()
    with pytest.raises(InvalidProgramError, match=r"'Sink: Print' .* call uid\(...\) on it, or"):
        env.explain()
    printed.uid("out")
    assert "uid out" in env.explain()


def test_batch_refuses_endless_sources(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_source(DataGeneratorSource(str)).print()

    with pytest.raises(UnsupportedFeatureError, match="never ends; use RuntimeExecutionMode"):
        env.execute()


def test_a_listener_that_fails_does_not_fail_the_job(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    env.add_epoch_listener(lambda report: 1 // 0)
    assert sorted(env.from_sequence(1, 3).execute_and_collect()) == [1, 2, 3]
    assert "ZeroDivisionError" in caplog.text
