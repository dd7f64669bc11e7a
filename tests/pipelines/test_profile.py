"""A profiled job tells which operator takes the time, and an unprofiled one pays nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from gated import await_true

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import FileAccessError, InvalidArgumentError
from penstock.runtime.profiling import sampler

PROGRAM = Path(__file__).parent / "programs" / "counting.py"
SOURCES = Path(__file__).parents[2] / "src"
SHARED = Path(__file__).parent / "shared"


locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


def spend(seconds: float) -> None:
    """Of the processor: what others take of it meanwhile then falls on all alike."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def slow(value: int) -> int:
    spend(0.004)
    return value


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        spend(0.0005)
        self.count.update((self.count.value() or 0) + 1)
        yield value
        yield value


def profiled(tmp_path: Path, **settings: str) -> dict[str, str]:
    return {
        "penstock.profile.enabled": "true",
        "penstock.profile.dir": str(tmp_path / "profiles"),
        "penstock.profile.interval": "1 ms",
        **settings,
    }


def operators_in(path: Path) -> dict[str, Any]:
    found = json.loads((path / "profile.json").read_text())
    return {operator["label"]: operator for operator in found["operators"]}


def test_the_slowest_operator_is_named(make_env: Any, tmp_path: Path) -> None:
    env = make_env(profiled(tmp_path))
    numbers = env.from_sequence(1, 100).map(lambda n: n).name("quick").map(slow).name("slow")
    counted = numbers.key_by(lambda n: n % 5).process(Counting()).name("count")
    list(counted.map(lambda n: n).name("after").execute_and_collect("named"))
    place = tmp_path / "profiles" / "named"
    operators = operators_in(place)
    totals = [found["total_seconds"] for found in operators.values()]
    assert totals == sorted(totals, reverse=True)
    own = {name: found["self_seconds"] for name, found in operators.items()}
    assert sorted(own, key=lambda name: -own[name])[:2] == ["slow", "count"]
    assert own["slow"] > 3 * own["count"]
    assert operators["slow"]["location"].startswith(__file__)
    records = {name: found["records"] for name, found in operators.items()}
    assert [records[name] for name in ("quick", "slow", "count", "after")] == [100, 100, 100, 200]
    assert {operators[name]["subtasks"] for name in ("slow", "count")} == {2}
    folded = (place / "profile.folded").read_text()
    assert ";slow;slow (test_profile.py:" in folded
    assert ";spend (test_profile.py:" in folded
    assert ET.fromstring((place / "flame.svg").read_text()).tag.endswith("svg")
    assert (place / "profile.txt").read_text().startswith("Profile of job named: ")


class Loading(MapFunction):
    def open(self, runtime_context: Any) -> None:
        spend(0.3)

    def map(self, value: int) -> int:
        return value


@locally
def test_the_opening_of_a_function_is_its_operators(make_env: Any, tmp_path: Path) -> None:
    env = make_env(profiled(tmp_path))
    numbers = env.from_sequence(1, 10).map(lambda n: n).name("first").map(Loading()).name("loading")
    list(numbers.map(lambda n: n).name("last").execute_and_collect("opening"))
    operators = operators_in(tmp_path / "profiles" / "opening")
    total = {name: found["total_seconds"] for name, found in operators.items()}
    assert total["loading"] > 0.2 > 0.1 > sum(total.values()) - total["loading"]


@locally
def test_a_job_that_is_not_profiled_has_no_sampler(
    make_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "_sampler", None)
    before = sys.getswitchinterval()

    def interval(value: int) -> float:
        return sys.getswitchinterval()

    found = make_env().from_collection([1]).map(interval).filter(bool).execute_and_collect()
    assert list(found) == [before]
    assert sampler._sampler is None
    assert list(tmp_path.glob("**/profile.*")) == []


@locally
def test_each_job_of_a_program_has_its_own(make_env: Any, tmp_path: Path) -> None:
    env = make_env(profiled(tmp_path))
    list(env.from_collection([1]).map(slow).name("first").execute_and_collect("twice"))
    list(env.from_collection([1]).map(slow).name("second").execute_and_collect("twice"))
    assert "first" in operators_in(tmp_path / "profiles" / "twice")
    assert "second" in operators_in(tmp_path / "profiles" / "twice-2")


@locally
def test_what_a_failed_attempt_took_is_in_it(make_env: Any, tmp_path: Path) -> None:
    marker = tmp_path / "failed"

    def fail_once(value: int) -> int:
        spend(0.15)
        if not marker.exists():
            marker.write_text("")
            raise ValueError("once")
        return value

    settings = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0"}
    env = make_env(profiled(tmp_path, **settings))
    list(env.from_collection([1]).map(fail_once).name("fails").execute_and_collect("again"))
    found = json.loads((tmp_path / "profiles" / "again" / "profile.json").read_text())
    assert found["failed_epochs"] == 1
    assert operators_in(tmp_path / "profiles" / "again")["fails"]["self_seconds"] > 0.2


@locally
def test_a_failed_job_leaves_its_profile(make_env: Any, tmp_path: Path) -> None:
    def fails(value: int) -> int:
        spend(0.15)
        raise ValueError("always")

    env = make_env(profiled(tmp_path, **{"restart-strategy.type": "none"}))
    env.from_collection([1]).map(fails).name("fails").print()
    with pytest.raises(Exception, match="always"):
        env.execute("failing")
    assert operators_in(tmp_path / "profiles" / "failing")["fails"]["self_seconds"] > 0


@locally
def test_state_and_exchange_are_told_apart(make_env: Any, tmp_path: Path) -> None:
    class Reading(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

        def process_element(self, value: int, ctx: Any) -> None:
            for _ in range(10):
                self.last.update(self.last.value() or "x")

    env = make_env(profiled(tmp_path))
    numbers = env.from_sequence(1, 150_000).key_by(lambda n: n % 1000)
    numbers.process(Reading()).name("reads").print()
    env.execute("state")
    kinds = operators_in(tmp_path / "profiles" / "state")["reads"]["kinds"]
    assert kinds["state read"] > 0
    assert kinds["state write"] > 0
    folded = (tmp_path / "profiles" / "state" / "profile.folded").read_text()
    assert ";[state read];LiveValueState.value (" in folded
    assert ";[keys and routing];" in folded


@locally
def test_a_directory_that_is_a_file_is_refused(make_env: Any, tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("")
    env = make_env(profiled(tmp_path))
    env.from_collection([1]).print()
    with pytest.raises(FileAccessError, match="cannot write to"):
        env.execute()


@locally
def test_an_interval_of_nothing_is_refused(make_env: Any, tmp_path: Path) -> None:
    env = make_env(profiled(tmp_path, **{"penstock.profile.interval": "0"}))
    env.from_collection([1]).print()
    with pytest.raises(InvalidArgumentError, match=r"penstock.profile.interval must be at least"):
        env.execute()


@locally
def test_a_disk_that_fills_up_does_not_fail_the_job(
    make_env: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env: StreamExecutionEnvironment = make_env(profiled(tmp_path))

    def gone(value: int) -> int:
        os.rmdir(tmp_path / "profiles" / "gone")
        return value

    assert list(env.from_collection([1]).map(gone).execute_and_collect("gone")) == [1]
    assert "the profile of job gone cannot be written" in caplog.text


def _run(place: Path, *flags: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(SOURCES), str(SHARED), *filter(None, sys.path)])
    command = [sys.executable, "-m", "penstock", "run", "-D", "penstock.executor=local"]
    return subprocess.Popen(
        [*command, *flags, str(PROGRAM), str(place)],
        env={**os.environ, "PYTHONPATH": path, "PENSTOCK_STATE_DIR": str(place / "state")},
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
    )


def test_interrupted_it_shows_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "gate").write_text("10")
    process = _run(tmp_path, "--profile")
    try:
        await_true(lambda: any((tmp_path / "out").glob("**/part*")) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    place = tmp_path / "penstock-profile" / "counting"
    assert "Profile of job counting: " in err
    assert f"the flame graph: {place / 'flame.svg'}" in err
    assert (place / "profile.txt").read_text() in err


def test_a_place_that_cannot_be_written_to_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = _run(tmp_path, "--profile-dir", "file/x")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "no profile can be written: cannot write to" in err) == (2, True)
