"""A PyFlink program runs with only the import changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parent / "programs" / "for_pyflink" / "word_count.py"

COUNTS = {"(and,1)", "(is,2)", "(out,2)", "(over,2)", "(rain,1)", "(sun,1)", "(the,2)"}


def test_word_count(
    executor: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", executor)
    monkeypatch.setattr(sys, "argv", ["word_count.py"])
    program = _PROGRAM.read_text().replace("from pyflink.", "from penstock.")

    exec(compile(program, str(_PROGRAM), "exec"), {"__name__": "__main__"})

    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == len(COUNTS)
    assert set(lines) == COUNTS
