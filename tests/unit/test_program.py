"""Programs as the command line runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.cli import main


@pytest.fixture(autouse=True)
def _leave_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def test_runs_as_main(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its arguments, though they look like ours, and with what lies beside it."""
    (tmp_path / "neighbour_of_program.py").write_text("WORD = 'hello'")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, neighbour_of_program, __main__\n"
        "class Own: pass\n"
        "print(__name__, neighbour_of_program.WORD, sys.argv[1:], __main__.Own is Own, __file__)\n"
    )

    assert main(["run", str(program), "--as-pyflink", "-x"]) == 0

    printed = capsys.readouterr().out
    assert printed == f"__main__ hello ['--as-pyflink', '-x'] True {program}\n"


def test_its_errors_look_as_if_python_had_run_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("def fail():\n    raise KeyError('mine')\nfail()\n")

    assert main(["run", str(program)]) == 1

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{program}", line 3, in <module>'
    assert lines[-1] == "KeyError: 'mine'"


def test_its_exit_code_is_ours(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit(7)")
    with pytest.raises(SystemExit) as caught:
        main(["run", str(program)])
    assert caught.value.code == 7


def test_no_such_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.py"
    assert main(["run", str(missing)]) == 2  # as Python has it
    expected = f"penstock: cannot read the program {missing}: No such file or directory\n"
    assert capsys.readouterr().err == expected
