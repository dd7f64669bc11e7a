"""Programs that import `pyflink` run unchanged, and print what PyFlink prints for them.

The lines were recorded from PyFlink 2.3; `scripts/compare_with_pyflink.py` records them anew. Only
the subtask may differ, since keys have other hashes here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs" / "for_pyflink"
QUICK_JVM = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
}
SOURCES = Path(__file__).parents[2] / "src"

PRINTED = {
    "word_count.py": ["(and,1)", "(is,2)", "(out,2)", "(over,2)", "(rain,1)", "(sun,1)", "(the,2)"],
    "purchases.py": [
        "spent> +I[eva,10.100000381469727]",
        "spent> +I[eva,10.800000369548798]",
        "spent> +I[eva,11.850000321865082]",
        "spent> +I[tom,2.299999952316284]",
        "spent> +I[tom,6.700000047683716]",
    ],
    "reminders.py": [
        "silent> ('attic', 9000)",
        "silent> ('cellar', 5500)",
        "warm> attic has 31 degrees",
    ],
    "visits.py": [
        "count> ('help', [4, 5])",
        "count> ('home', [1, 2])",
        "count> ('home', [6, 14])",
        "dynamic> (help,4,13,2)",
        "dynamic> (home,1,11,3)",
        "dynamic> (home,14,19,1)",
        "session> (help,4,10,2)",
        "session> (home,1,11,3)",
        "session> (home,14,19,1)",
        "sliding> (help,-5,5,1)",
        "sliding> (help,0,10,2)",
        "sliding> (help,5,15,1)",
        "sliding> (home,-5,5,2)",
        "sliding> (home,0,10,3)",
        "sliding> (home,10,20,1)",
        "sliding> (home,5,15,2)",
        "tumbling> (help,0,5,1)",
        "tumbling> (help,5,10,1)",
        "tumbling> (home,0,5,2)",
        "tumbling> (home,10,15,1)",
        "tumbling> (home,5,10,1)",
    ],
    "discounts.py": [
        "to pay> coffee 350",
        "to pay> milk 100",
        "to pay> tea 300",
        "to pay> tea 450",
    ],
    "orders.py": [
        "dear> (2, {'id': 2, 'item': {'name': 'desk', 'price': 500.0}, 'rush': True})",
        "dear> (3, {'id': 3, 'item': {'name': 'lamp', 'price': 80.5}, 'rush': False})",
        "fields> (2,desk,true,500.0)",
        "fields> (3,lamp,false,80.5)",
        'orders> +I[1,{"id": 1, "item": {"name": "pen", "price": 1.5}, "rush": false}]',
        'orders> +I[2,{"id": 2, "item": {"name": "desk", "price": 250.0}, "rush": true}]',
        'orders> +I[3,{"id": 3, "item": {"name": "lamp", "price": 40.25}, "rush": false}]',
    ],
}
# Not in batch mode there, so every word counts up.
WORDS = [
    *(f"words> ({word},1)" for word in ("and", "is", "out", "over", "rain", "sun", "the")),
    *(f"words> ({word},2)" for word in ("is", "out", "over", "the")),
]


def run(executor: str, directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", "run", *command],
        env={**os.environ, **QUICK_JVM, "PENSTOCK_EXECUTOR": executor, "PYTHONPATH": str(SOURCES)},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def printed(executor: str, directory: Path, *command: str) -> list[str]:
    """The lines without subtasks, sorted."""
    done = run(executor, directory, "--as-pyflink", *command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return sorted(re.sub(r"^(.*:)?\d+> ", _without_subtask, line) for line in lines)


def _without_subtask(prefix: re.Match[str]) -> str:
    return f"{prefix[1][:-1]}> " if prefix[1] else ""


@pytest.mark.parametrize("program", PRINTED)
def test_prints_what_pyflink_prints(program: str, tmp_path: Path) -> None:
    assert printed("local", tmp_path, str(PROGRAMS / program)) == PRINTED[program]


@pytest.mark.spark
@pytest.mark.slow
def test_on_spark(tmp_path: Path) -> None:
    """The workers find the modules beside the script, which import `pyflink`, and so do they."""
    lines = [line for name, lines in PRINTED.items() if name != "word_count.py" for line in lines]
    found = printed("spark", tmp_path, str(PROGRAMS / "all_programs.py"))
    assert found == sorted(lines + WORDS)


def test_arguments_are_the_programs_own(tmp_path: Path) -> None:
    lines = printed("local", tmp_path, str(PROGRAMS / "word_count.py"), "--parallelism", "2")
    assert lines == PRINTED["word_count.py"]


def test_without_the_switch_there_is_no_pyflink(tmp_path: Path) -> None:
    done = run("local", tmp_path, str(PROGRAMS / "word_count.py"))
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'pyflink'" in done.stderr
