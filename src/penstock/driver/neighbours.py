"""The modules that lie beside the user's program: workers need them, and do not have the file.

Only those that the program has loaded or names in an import, wherever in its text: a function may
import what it needs when it runs. Other files of the directory stay where they are.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache

# On every worker already, and not to be had twice.
_EVERYWHERE = frozenset({"penstock", "pyflink", "pyspark"})
_LIBRARIES = ("site-packages", "dist-packages")


def program_directory() -> str | None:
    """Where the program's own modules are; None if it is part of an installed library."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None:  # a notebook, or Python's prompt
        return os.getcwd()
    directory = os.path.dirname(os.path.realpath(file))
    if getattr(main, "__spec__", None) is not None:  # python -m package.module
        for _ in filter(None, (getattr(main, "__package__", None) or "").split(".")):
            directory = os.path.dirname(directory)
    parts = directory.split(os.sep)
    library = any(name in parts for name in _LIBRARIES)
    return None if library or directory == sysconfig.get_path("stdlib") else directory


def neighbours() -> list[str]:
    """The paths of the modules (files) and packages (directories) to ship."""
    directory = program_directory()
    if directory is None:
        return []
    found: dict[str, str] = {}
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    named = _imported_by(file) if file is not None else frozenset()
    waiting = [*_loaded_from(directory), *named]
    while waiting:
        name = waiting.pop()
        path = None if name in found or name in _EVERYWHERE else _module(directory, name)
        if path is not None:
            found[name] = path
            for source in _sources(path):
                waiting += _imported_by(source)
    return sorted(found.values())


def _loaded_from(directory: str) -> list[str]:
    names = []
    for name, module in list(sys.modules.items()):
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if "." not in name and any(_is_below(place, directory) for place in places):
            names.append(name)
    return names


def _is_below(place: object, directory: str) -> bool:
    return isinstance(place, str) and os.path.realpath(place).startswith(directory + os.sep)


def _module(directory: str, name: str) -> str | None:
    package = os.path.join(directory, name)
    if os.path.isfile(os.path.join(package, "__init__.py")):
        return package
    if os.path.isfile(f"{package}.py"):
        return f"{package}.py"
    loaded = getattr(sys.modules.get(name), "__path__", ())
    return package if package in loaded else None  # a package without __init__.py


def _sources(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for parent, _, files in os.walk(path):
        yield from (os.path.join(parent, file) for file in files if file.endswith(".py"))


def _imported_by(path: str) -> frozenset[str]:
    """The top-level names of all imports in a file."""
    try:
        status = os.stat(path)
    except OSError:
        return frozenset()
    return _imports_in(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=10_000)
def _imports_in(path: str, changed: int, size: int) -> frozenset[str]:
    """The same; a notebook starts many jobs, and parsing a large directory takes seconds."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return frozenset()  # Python will say so if it matters
    return frozenset(_imports_of(tree))


def _imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
