"""The code of a guide page runs, from top to bottom, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize(
    "page",
    [
        "async-io.md",
        "configuration.md",
        "evolution.md",
        "files.md",
        "iterations.md",
        "operator-state.md",
        "runtime-modes.md",
        "savepoint-format.md",
        "savepoints.md",
        "side-inputs.md",
        "splitting.md",
        "state.md",
        "windows.md",
    ],
)
def test_a_page_tells_the_truth(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    blocks = re.findall(r"```python\n(.*?)```", (GUIDE / page).read_text(), re.S)
    assert blocks
    namespace: dict[str, Any] = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, page, "exec", dont_inherit=True), namespace)
        said = re.findall(r"^# ([\[(\d].*(?:\n# .*)*)", block, re.M)
        printed = capsys.readouterr().out
        for lines in said:
            expected = " ".join(lines.replace("\n# ", " ").split())
            assert expected in " ".join(printed.split())
