from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.storage import crash_points

CODE = """
from penstock.storage.crash_points import reach
for n in range(3):
    reach("other")
    reach("here")
    print(n, flush=True)
"""


def run(**env: str) -> tuple[int, str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("at", "expected"),
    [("here", (37, "")), ("here:3", (37, "01")), ("here:4", (0, "012")), ("nowhere", (0, "012"))],
)
def test_dies_where_it_was_told(at, expected):
    assert run(**{crash_points.AT: at}) == expected


def test_dies_once(tmp_path):
    env = {crash_points.AT: "here:2", crash_points.ONCE: str(tmp_path / "died")}
    assert run(**env) == (37, "0")
    assert run(**env) == (0, "012")


def test_does_nothing_unless_asked(monkeypatch):
    monkeypatch.delenv(crash_points.AT, raising=False)
    crash_points.reach("here")
