"""The examples run as a user runs them: as scripts, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

WORD_COUNT = [
    ("be", 1),
    ("be", 2),
    ("is", 1),
    ("not", 1),
    ("or", 1),
    ("question", 1),
    ("that", 1),
    ("the", 1),
    ("to", 1),
    ("to", 2),
]
EXPECTED = {
    "word_count.py": [str(pair) for pair in WORD_COUNT],
    "meter_readings.py": [
        "north used 1 from minute 20 to 30",
        "north used 12 from minute 0 to 10",
        "north used 18 from minute 10 to 20",
        "south used 2 from minute 0 to 15",
    ],
    "limits.py": ["a: 24.1 is above 23.0", "b: 30.0 is above 25.0"],
    "order_payments.py": ["a took 3000 ms", "b is not paid", "c is not paid"],
    "sensor_alerts.py": ["a: from 17.0 to 23.5", "b: from 18.5 to 24.1"],
}


def printed(example: str, executor: str) -> list[str]:
    """What the example printed, without the subtask in front, in sorted order."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)],
        env={**os.environ, "PENSTOCK_EXECUTOR": executor},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return sorted(line.partition("> ")[2] or line for line in done.stdout.splitlines())


@pytest.mark.parametrize("example", EXPECTED)
def test_on_the_local_executor(example: str) -> None:
    assert printed(example, "local") == EXPECTED[example]


@pytest.mark.spark
@pytest.mark.slow
def test_on_spark() -> None:
    assert printed("sensor_alerts.py", "spark") == EXPECTED["sensor_alerts.py"]


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


def test_the_guide_quotes_the_examples() -> None:
    """Where a page of the guide names an example, its code is in one of those it names."""
    for page in ("connecting.md",):
        text = (EXAMPLES.parent / "docs" / "guide" / page).read_text()
        named = [path.read_text() for path in EXAMPLES.glob("*.py") if path.name in text]
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        assert blocks
        for block in blocks:
            assert any(block in example for example in named), block
