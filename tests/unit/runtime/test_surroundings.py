"""Jobs that take turns in one worker do not see each other's modules."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.runtime.surroundings import Surroundings


@pytest.fixture(autouse=True)
def _leave_as_found() -> Iterator[None]:
    path, directory = list(sys.path), os.getcwd()
    yield
    Surroundings().enter("")
    assert sys.path == path
    assert os.getcwd() == directory
    assert "turning" not in sys.modules


@pytest.fixture
def root(tmp_path: Path) -> str:
    for job in ("one", "two"):
        (tmp_path / job).mkdir()
        (tmp_path / job / "turning.py").write_text(f"JOB = {job!r}\nclass Record: pass\n")
        (tmp_path / job / "word.txt").write_text(job)
    return str(tmp_path)


ONE, TWO = Surroundings(("one",)), Surroundings(("two",))


def test_each_has_its_own_modules_and_keeps_them(root: str) -> None:
    ONE.enter(root)
    first = importlib.import_module("turning")
    TWO.enter(root)
    second = importlib.import_module("turning")
    assert (first.JOB, second.JOB) == ("one", "two")

    ONE.enter(root)
    # Else a record made before could not be pickled any more.
    assert sys.modules["turning"] is first
    Surroundings(("two",)).enter(root)
    assert sys.modules["turning"] is second


def test_what_is_not_sent_stays(root: str) -> None:
    ONE.enter(root)
    importlib.import_module("turning")
    TWO.enter(root)
    assert "turning" not in sys.modules
    assert "pytest" in sys.modules


def test_archives_lie_in_the_working_directory(root: str) -> None:
    home = os.getcwd()
    with_archives = Surroundings((), (("one", "data"), ("two", "more/data")))
    with_archives.enter(root)
    assert Path("data/word.txt").read_text() == "one"
    assert Path("more/data/word.txt").read_text() == "two"
    ONE.enter(root)
    assert os.getcwd() == home
    with_archives.enter(root)
    assert Path("data/word.txt").read_text() == "one"


def test_the_root_may_be_relative(root: str) -> None:
    """To where the worker was started, wherever it is now."""
    relative = os.path.relpath(root)
    both = Surroundings(("two",), (("one", "data"),))
    for _ in range(2):
        both.enter(relative)
        assert Path("data/word.txt").read_text() == "one"
    assert importlib.import_module("turning").JOB == "two"
