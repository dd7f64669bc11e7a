"""What shells complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import completers
from penstock.driver import registry


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nospace -o default -o bashdefault -F _python_argcomplete penstock"),
        ("zsh", "#compdef penstock"),
        ("fish", "complete --command penstock -f -a '(__fish_penstock_complete)'"),
    ],
)
def test_scripts(shell: str, line: str, said: Any, tmp_path: Path) -> None:
    script = said("completion", shell)
    assert line in [found.strip() for found in script.splitlines()]
    if shutil.which(shell) is not None:  # few have all three
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


def _completed(line: str, tmp_path: Path) -> list[str]:
    """As a shell asks."""
    out = tmp_path / "completions"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run(
        [sys.executable, "-c", "from penstock.cli import main; main()"],
        env=environment,
        check=False,
    )
    return [word.strip() for word in out.read_text().split("\n")]


def test_commands_and_jobs(tmp_path: Path, entry: Any) -> None:
    registry.enter(entry("aa11", job_id="alerts"))
    assert _completed("penstock che", tmp_path) == ["checkpoints"]
    assert _completed("penstock cancel al", tmp_path) == ["alerts"]


def test_settings(tmp_path: Path) -> None:
    keys = completers.option_keys("")
    assert "parallelism.default=" in keys


def test_jobs_or_directories(tmp_path: Path, entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "inner").mkdir(parents=True)
    (tmp_path / "here" / "file").touch()
    registry.enter(entry("aa11", job_id="alerts"))
    assert completers.jobs_and_directories(f"{tmp_path}/here/") == [
        *("aa11", "alerts", f"{tmp_path}/here/inner/")
    ]
