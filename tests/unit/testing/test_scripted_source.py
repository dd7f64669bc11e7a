"""Scripted sources, the manual clock, and running programs locally."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.time import Duration
from penstock.datastream import StreamExecutionEnvironment
from penstock.driver.epoch_report import EpochReport
from penstock.errors import InvalidArgumentError, UserFunctionError
from penstock.testing import ManualClock, ScriptedSource, run_local

FAIL = ScriptedSource.FAIL


def local_environment(settings: dict[Any, Any] | None = None) -> StreamExecutionEnvironment:
    configuration = Configuration().set(options.EXECUTOR, "local")
    for option, value in (settings or {}).items():
        configuration.set(option, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def records_per_epoch(reports: list[EpochReport]) -> list[int]:
    """Records read by the source in each epoch but the last, which only ends the job."""
    return [max(report.records_in.values()) for report in reports if not report.final]


@pytest.mark.parametrize(
    "script", [[[1, 2], [3], []], [[], [1]], [[1]], [[]], [], [list(range(25_000)), [7]]]
)
def test_epochs_are_cut_as_scripted(script: list[list[int]]) -> None:
    env = local_environment()
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    stream = env.from_source(ScriptedSource(script)).map(lambda value: value)
    assert sorted(run_local(stream)) == sorted(value for epoch in script for value in epoch)
    assert records_per_epoch(reports) == [len(epoch) for epoch in script]


def test_splits_follow_their_own_scripts() -> None:
    env = local_environment()
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    source = ScriptedSource({"a": [[1], [], [2, 3]], "b": [[], [4]], "none": []})
    assert [split.split_id for split in source.create_splits(1)] == ["a", "b"]
    assert sorted(run_local(env.from_source(source).map(lambda value: value))) == [1, 2, 3, 4]
    assert records_per_epoch(reports) == [1, 1, 2]


@pytest.mark.parametrize(
    "script",
    [
        [[1, 2], [3, FAIL, 4], [5]],
        [[1, 2, 3, FAIL], [4, 5]],
        [[FAIL, 1, 2, 3], [FAIL], [4, FAIL, FAIL, 5, FAIL]],
    ],
)
def test_fails_once_and_goes_on(script: list[list[Any]]) -> None:
    env = local_environment(
        {
            options.RESTART_STRATEGY: "fixed-delay",
            options.FIXED_DELAY_ATTEMPTS: 9,
            options.FIXED_DELAY_DELAY: 1,
        }
    )
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    stream = (
        env.from_source(ScriptedSource(script))
        .key_by(lambda value: "all")
        .reduce(lambda a, b: a + b)
    )
    assert run_local(stream) == [1, 3, 6, 10, 15]
    assert records_per_epoch(reports) == [
        sum(record is not FAIL for record in epoch) for epoch in script
    ]


def test_without_a_restart_the_job_fails() -> None:
    env = local_environment()
    with pytest.raises(UserFunctionError, match="says FAIL here"):
        run_local(env.from_source(ScriptedSource([[1, FAIL]])).map(str))


def test_a_failure_is_remembered_in_the_checkpoint(tmp_path: Any) -> None:
    def run() -> list[Any]:
        env = local_environment(
            {
                options.CHECKPOINT_DIR: str(tmp_path),
                options.JOB_ID: "again",
                options.RESTART_STRATEGY: "none",
            }
        )
        source = ScriptedSource([[1, 2], [3, FAIL, 4]])
        keyed = env.from_source(source).key_by(lambda value: 0)
        return run_local(keyed.reduce(lambda a, b: a + b))

    with pytest.raises(UserFunctionError):
        run()
    assert run() == [6, 10]


def test_a_script_is_a_list_of_lists() -> None:
    for script in ([1, 2], ["ab"], [FAIL]):
        with pytest.raises(InvalidArgumentError, match="a list of records"):
            ScriptedSource(script)  # type: ignore[arg-type]
    for script in ("ab", {"split": 5}):
        with pytest.raises(InvalidArgumentError, match="a list of lists of records"):
            ScriptedSource(script)  # type: ignore[arg-type]


def test_run_local_leaves_the_environment_as_it_was() -> None:
    env = StreamExecutionEnvironment(Configuration().set(options.EXECUTOR, "spark"))
    env.set_parallelism(1)
    assert run_local(env.from_elements(1, 2).map(lambda value: value + 1)) == [2, 3]
    assert env._configuration.get(options.EXECUTOR) == "spark"
    assert run_local(env.from_elements("x")) == ["x"]


def test_a_manual_clock() -> None:
    clock = ManualClock(5)
    assert clock.now() == 5
    assert clock.advance(10) == 15
    assert clock.advance(Duration.of_seconds(1)) == 1015
    assert clock.set(2000) == clock.now() == 2000
    with pytest.raises(InvalidArgumentError, match="at least 2000"):
        clock.set(1999)
    with pytest.raises(InvalidArgumentError, match="zero or longer"):
        clock.advance(-1)
