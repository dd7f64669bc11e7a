"""Function classes: open before the first record, close at the end, and what they are told."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.errors import UserFunctionError


class Diary(MapFunction):
    """Writes down when it is opened, used and closed, and by whom."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._name = ""

    def _note(self, what: str) -> None:
        with open(self._path, "a") as file:
            file.write(f"{what} {os.getpid()} {self._subtask} {self._name}\n")

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._note("open" if not self._name else "opened before")
        self._name = secrets.token_hex(4)

    def map(self, value: Any) -> Any:
        self._note("map")
        return value

    def close(self) -> None:
        self._note("close")


def test_opened_once_and_closed(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    """More subtasks than slots, so that a process has several."""
    env.set_parallelism(8)
    diary = tmp_path / "diary"

    list(env.from_sequence(1, 80).map(Diary(diary)).execute_and_collect())

    lines = [line.split() for line in diary.read_text().splitlines()]
    opened = Counter((process, subtask) for what, process, subtask, *_ in lines if what == "open")
    assert set(opened.values()) == {1}, "once per subtask and process"
    assert {subtask for _, subtask in opened} == set("01234567")
    assert "opened" not in {line[0] for line in lines}
    notes: dict[str, list[str]] = {}
    for what, *_, name in (line for line in lines if line[0] != "open"):
        notes.setdefault(name, []).append(what)
    assert sum(entry.count("map") for entry in notes.values()) == 80
    assert all("close" not in entry[:-1] for entry in notes.values())
    closed = {subtask for what, _, subtask, *_ in lines if what == "close"}
    assert closed == set("01234567")


def test_a_whole_chain_is_opened_and_closed(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """Five functions in one task, each with a diary of its own."""
    diaries = [tmp_path / f"diary{number}" for number in range(5)]
    stream = env.from_sequence(1, 20)
    for diary in diaries:
        stream = stream.map(Diary(diary))

    assert sorted(stream.execute_and_collect()) == list(range(1, 21))

    kept = []
    for diary in diaries:
        lines = [line.split() for line in diary.read_text().splitlines()]
        done = Counter(what for what, *_ in lines)
        assert done["map"] == 20, diary
        assert {subtask for what, _, subtask, *_ in lines if what == "close"} == set("01"), diary
        kept.append((done["open"], done["close"]))
    # A subtask may have been in two workers, of which the one without the last epoch closes later.
    assert len(set(kept)) == 1


class Numbering(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._next = 0

    def map(self, value: tuple[int, ...]) -> tuple[int, ...]:
        self._next += 1
        return *value, self._next


def test_one_function_object_for_two_operators(env: StreamExecutionEnvironment) -> None:
    """Each operator has an instance of its own, as when Flink deserializes it."""
    env.set_parallelism(1)
    numbering = Numbering()

    stream = env.from_elements((10,), (20,)).map(numbering).map(numbering)

    assert list(stream.execute_and_collect()) == [(10, 1, 1), (20, 2, 2)]


class Report(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self._seen = group.counter("seen")
        self._sizes = group.add_group("more").distribution("sizes")
        group.gauge("answer", lambda: 42)
        self._told = {
            "job": runtime_context.get_job_id(),
            "task": runtime_context.get_task_name(),
            "with subtasks": runtime_context.get_task_name_with_subtasks(),
            "subtasks": runtime_context.get_number_of_parallel_subtasks(),
            "most": runtime_context.get_max_number_of_parallel_subtasks(),
            "attempt": runtime_context.get_attempt_number(),
            "setting": runtime_context.get_job_parameter("my.setting", "none"),
            "missing": runtime_context.get_job_parameter("other", "none"),
        }

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self._seen.inc()
        self._sizes.update(value)
        told = {**self._told, "timestamp": ctx.timestamp()}
        told["watermark"] = ctx.timer_service().current_watermark()
        yield told


def test_runtime_context_and_metrics(make_env: Any) -> None:
    env = make_env({"my.setting": "on", "penstock.job-id": "told"})
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    stream = env.from_sequence(1, 10).key_by(lambda n: 0).process(Report()).name("report").uid("r")

    found = list(stream.execute_and_collect())

    subtask = found[0]["with subtasks"]
    assert subtask in ("report (1/2)", "report (2/2)")
    smallest_long = -9223372036854775808
    told = {
        "job": "told",
        "task": "report",
        "with subtasks": subtask,
        "subtasks": 2,
        "most": 128,
        "attempt": 0,
        "setting": "on",
        "missing": "none",
        "timestamp": smallest_long,
        "watermark": smallest_long,
    }
    assert found == [told] * 10
    metrics = [m for report in reports for m in report.metrics.get("r", [])]
    index = 0 if "1/2" in subtask else 1
    seen = max(m.get(f"report.{index}.seen", 0) for m in metrics)
    assert seen == 10
    sizes = [m for m in metrics if f"report.{index}.more.sizes" in m]
    assert {"count": 10, "sum": 55, "min": 1, "max": 10, "mean": 5.5} in [
        m[f"report.{index}.more.sizes"] for m in sizes
    ]
    assert all(m[f"report.{index}.answer"] == 42 for m in sizes)


def test_global_job_parameters(env: StreamExecutionEnvironment) -> None:
    class Ask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._limit = runtime_context.get_job_parameter("limit", "0")

        def map(self, value: Any) -> str:
            return self._limit

    env.get_config().set_global_job_parameters({"limit": 7})

    assert list(env.from_elements(1).map(Ask()).execute_and_collect()) == ["7"]


class FailsAtFirst(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context
        self._at_open = runtime_context.get_attempt_number()

    def map(self, value: int) -> tuple[int, int]:
        if self._context.get_attempt_number() == 0 and value == 35:
            raise RuntimeError("not yet")
        return self._at_open, self._context.get_attempt_number()


def _attempts(restartable_env: Any) -> list[tuple[int, int]]:
    env = restartable_env(
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "1 ms",
            "parallelism.default": "1",
        }
    )
    return list(env.from_collection(range(60)).map(FailsAtFirst()).execute_and_collect())


def test_attempt_number_after_a_restart(restartable_env: Any) -> None:
    attempts = _attempts(restartable_env)

    assert len(attempts) == 60
    assert attempts[:30] == [(0, 0)] * 30
    assert {attempt for _, attempt in attempts[30:40]} == {1}


def test_attempt_number_in_open(restartable_env: Any) -> None:
    assert _attempts(restartable_env)[30:] == [(1, 1)] * 30


class Stateless(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ValueError("no connection")

    def flat_map(self, value: Any) -> list[Any]:
        return [value]


class OpenedFilter(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._even = runtime_context.get_number_of_parallel_subtasks() == 2

    def filter(self, value: int) -> bool:
        return self._even and value % 2 == 0


def test_open_that_fails_and_open_of_a_filter(env: StreamExecutionEnvironment) -> None:
    assert sorted(env.from_sequence(1, 6).filter(OpenedFilter()).execute_and_collect()) == [2, 4, 6]

    with pytest.raises(UserFunctionError, match="no connection") as caught:
        list(env.from_elements(1).flat_map(Stateless()).execute_and_collect())
    assert "test_life_cycle.py:" in str(caught.value)
