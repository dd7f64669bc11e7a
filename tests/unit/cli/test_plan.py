"""What a program would run, shown without running it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.driver import registry

JOB = """\
import sys
from penstock.datastream import StreamExecutionEnvironment
print("hello from", sys.argv[1:])
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, 10).name("numbers")
numbers.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).name("sums").print()
try:
    env.execute("summing")
except Exception:
    print("the program goes on")
raise SystemExit("it ran")
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "job.py"
    path.write_text(JOB)
    return str(path)


def test_text(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-p", "3", program, "--its", "own"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Job 'summing': 3 operators in 2 chains and 2 stages\n")
    assert "(parallelism 3, max 128, keyed input)" in printed.out
    assert printed.err == "hello from ['--its', 'own']\n"
    assert registry.running() == registry.ended() == []


def test_formats(program: str, said: Any, told: Any, tmp_path: Path) -> None:
    assert "flowchart LR" in said("plan", "--format", "mermaid", program)
    out = tmp_path / "plan.svg"
    assert "<svg" not in said("plan", "--format", "svg", "-o", str(out), program)
    assert out.read_text().startswith("<svg ")


def test_json(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json", program]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [node["contents"] for node in nodes][:2] == ["numbers", "sums"]


def test_settings_count(program: str, said: Any, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("parallelism.default: 5\npipeline.max-parallelism: 64\n")
    text = said("plan", "--config", str(tmp_path / "c.yaml"), "-p", "6", program)
    assert "(parallelism 6, max 64" in text


def test_the_demo(said: Any, tmp_path: Path) -> None:
    path = tmp_path / "demo.py"
    path.write_text(
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "from penstock.demo.job import build\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "build(env, 100, 10.0, 'demo')\n"
        "env.execute('sensor demo')\n"
    )
    assert "Job 'sensor demo'" in said("plan", str(path))


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("print('nothing')", 1, "has ended without a job: it never called execute()"),
        ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
    ],
)
def test_programs_without_a_plan(
    source: str, code: int, message: str, said: Any, tmp_path: Path
) -> None:
    path = tmp_path / "job.py"
    path.write_text(source)
    assert message in said("plan", str(path), code=code)


def test_bad_settings_are_no_fault_of_the_program(program: str, said: Any) -> None:
    text = said("plan", "-D", "penstock.job-idd=x", program, code=2)
    assert text == (
        "penstock: unknown option 'penstock.job-idd'; did you mean 'penstock.job-id'?\n"
    )


def test_a_flag_behind_the_program_is_the_programs_own(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is easily put there by mistake, and would be missed in silence."""
    assert main(["plan", program, "--format=svg", "--its", "own", "-o", "x"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Job 'summing'")
    assert f"--format, -o behind {program} goes to the program" in printed.err
    assert main(["plan", "--format", "json", program, "--its", "own"]) == 0
    assert "behind" not in capsys.readouterr().err
