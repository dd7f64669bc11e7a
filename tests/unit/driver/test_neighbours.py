"""Which modules beside a program are sent to workers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import penstock
from penstock.driver.neighbours import neighbours, program_directory


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A program with modules beside it, of which it needs some."""
    files = {
        "main.py": "import used\ndef later():\n    from package.part import thing\n",
        "used.py": "import json, used_by_used\n",
        "used_by_used.py": "import used\n",
        "package/__init__.py": "",
        "package/part.py": "import used_by_package\n",
        "package/data.txt": "data",
        "used_by_package.py": "",
        "unused.py": "def broken(:\n",
        "json_like.py": "",
        "namespace/inner.py": "",
        "data.csv": "1,2",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / "main.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    return main


def names(tmp_path: Path) -> list[str]:
    return [str(Path(path).relative_to(tmp_path)) for path in neighbours()]


def test_what_is_imported_anywhere_and_by_whom_that_is(program: ModuleType, tmp_path: Path) -> None:
    expected = ["package", "used.py", "used_by_package.py", "used_by_used.py"]
    assert names(tmp_path) == expected


def test_what_is_loaded(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever way: also without a file that says so, as in a notebook."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    del program.__file__
    for name in ("json_like", "namespace.inner", "namespace"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
    assert names(tmp_path) == ["json_like.py", "namespace"]


def test_a_program_of_a_package(program: ModuleType, tmp_path: Path) -> None:
    """`python -m package.part`."""
    program.__file__ = str(tmp_path / "package" / "part.py")
    program.__spec__ = importlib.machinery.ModuleSpec("package.part", None)
    program.__package__ = "package"
    assert program_directory() == str(tmp_path)
    assert names(tmp_path) == ["used_by_package.py"]


def test_libraries_are_not_programs(program: ModuleType, tmp_path: Path) -> None:
    program.__file__ = str(tmp_path / "site-packages" / "tool" / "__main__.py")
    assert program_directory() is None
    assert neighbours() == []


def test_penstock_is_everywhere(program: ModuleType) -> None:
    """A program may lie beside the package itself, in a checkout."""
    source = Path(penstock.__file__).parents[1]
    program.__file__ = str(source / "script.py")
    assert program_directory() == str(source)
    assert neighbours() == []
