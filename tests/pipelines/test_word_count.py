"""A PyFlink program runs with only the import changed."""

from __future__ import annotations

from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parent / "programs" / "word_count.py"

COUNTS = {
    "('To', 1)",
    "('be,', 1)",
    "('or', 1)",
    "('not', 1)",
    "('to', 3)",
    "('be,--that', 1)",
    "('is', 2)",
    "('the', 1)",
    "('question:--', 1)",
    "('be', 1)",
    "('do', 1)",
}


def test_word_count(
    executor: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", executor)
    program = _PROGRAM.read_text().replace("from pyflink.", "from penstock.")

    exec(compile(program, str(_PROGRAM), "exec"), {"__name__": "__main__"})

    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == len(COUNTS)
    assert set(lines) == COUNTS
