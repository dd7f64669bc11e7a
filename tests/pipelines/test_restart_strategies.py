"""Row F4: every restart strategy, as jobs that fail on cue see it."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import UserFunctionError
from penstock.testing import ScriptedSource

KEY = "restart-strategy"
FAIL = ScriptedSource.FAIL


class Outcome:
    """What a job with so many failures gave, and how long it waited after each."""

    def __init__(self, env: Any, caplog: pytest.LogCaptureFixture, failures: int) -> None:
        self.values: list[int] = []
        self.failed = False
        caplog.clear()
        script: list[list[Any]] = [[0]]
        for number in range(1, failures + 1):
            script.append([FAIL, number])
        with caplog.at_level(logging.WARNING, logger="penstock"):
            try:
                for value in env.from_source(ScriptedSource(script)).execute_and_collect():
                    self.values.append(value)
            except UserFunctionError:
                self.failed = True
        waits = re.findall(r"restarts in (\d+) ms", caplog.text)
        self.waits = [int(wait) for wait in waits]


@pytest.fixture
def run(make_env: Any, caplog: pytest.LogCaptureFixture) -> Any:
    def run(settings: dict[str, str], failures: int = 3) -> Outcome:
        return Outcome(make_env(settings), caplog, failures)

    return run


def test_none(run: Any) -> None:
    found = run({f"{KEY}.type": "none"})
    assert (found.waits, found.failed, found.values) == ([], True, [0])


def test_fixed_delay(run: Any) -> None:
    settings = {
        f"{KEY}.type": "fixed-delay",
        f"{KEY}.fixed-delay.attempts": "2",
        f"{KEY}.fixed-delay.delay": "11 ms",
    }
    found = run(settings, failures=2)
    assert (found.waits, found.failed, found.values) == ([11, 11], False, [0, 1, 2])
    found = run(settings, failures=3)
    assert (found.waits, found.failed, found.values) == ([11, 11], True, [0, 1, 2])


def test_failure_rate(run: Any) -> None:
    settings = {
        f"{KEY}.type": "failure-rate",
        f"{KEY}.failure-rate.max-failures-per-interval": "2",
        f"{KEY}.failure-rate.failure-rate-interval": "10 min",
        f"{KEY}.failure-rate.delay": "12 ms",
    }
    found = run(settings)
    assert (found.waits, found.failed, found.values) == ([12, 12], True, [0, 1, 2])
    found = run({**settings, f"{KEY}.failure-rate.failure-rate-interval": "1 ms"})
    assert (found.waits, found.failed, found.values) == ([12, 12, 12], False, [0, 1, 2, 3])


def test_exponential_delay(run: Any) -> None:
    settings = {
        f"{KEY}.type": "exponential-delay",
        f"{KEY}.exponential-delay.initial-backoff": "10 ms",
        f"{KEY}.exponential-delay.max-backoff": "50 ms",
        f"{KEY}.exponential-delay.backoff-multiplier": "3",
        f"{KEY}.exponential-delay.jitter-factor": "0",
    }
    found = run(settings)
    assert (found.waits, found.failed, found.values) == ([10, 30, 50], False, [0, 1, 2, 3])
    found = run({**settings, f"{KEY}.exponential-delay.attempts-before-reset-backoff": "2"})
    assert (found.waits, found.failed, found.values) == ([10, 30], True, [0, 1, 2])


def test_by_default_a_job_with_checkpoints_is_restarted(run: Any, tmp_path: Path) -> None:
    found = run({"execution.checkpointing.dir": str(tmp_path / "checkpoints")}, failures=1)
    (wait,) = found.waits
    assert 1000 <= wait <= 1100  # a second, and jitter
    assert (found.failed, found.values) == (False, [0, 1])

    found = run({"execution.checkpointing.interval": "1 s"}, failures=1)
    assert (len(found.waits), found.failed, found.values) == (1, False, [0, 1])

    found = run({}, failures=1)
    assert (found.waits, found.failed, found.values) == ([], True, [0])
