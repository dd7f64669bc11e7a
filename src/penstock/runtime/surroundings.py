"""What a job finds around it in a worker: where to import from, and the working directory.

A worker serves one job after the other, or two in turn. Each has its own modules, which may be
called like the other's; so what one has loaded is set aside while the other is at work.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Surroundings:
    """All names are relative to where the engine puts a job's files in this worker."""

    imports: tuple[str, ...] = ()
    """Directories and zip files to import from, before anything else."""
    archives: tuple[tuple[str, str], ...] = ()
    """Unpacked archives, and the names they have in the working directory.

    The working directory is another only if there are any, as in PyFlink.
    """

    files: tuple[tuple[str, str, bool], ...] = ()
    """Names that functions ask for, the files, and whether they are to be executable."""

    def enter(self, root: str) -> None:
        """Make this the surroundings; costs nothing if it is already."""
        global _entered
        if not os.path.isabs(root):  # Spark's may be relative to where the worker was started
            root = os.path.join(_home(), root)
        if _entered == (self, root):
            return
        _leave()
        if self.imports or self.archives:
            self._enter(root)
        _entered = (self, root)

    def _enter(self, root: str) -> None:
        sys.path[:0] = self.paths(root)
        importlib.invalidate_caches()
        sys.modules.update(_set_aside.pop((self, root), {}))
        if self.archives:
            _home()
            os.chdir(self._working_directory(root))

    def paths(self, root: str) -> list[str]:
        return [os.path.join(root, name) for name in self.imports]

    def _working_directory(self, root: str) -> str:
        directory = os.path.join(root, "penstock-" + "-".join(name for name, _ in self.archives))
        for name, target in self.archives:
            link = os.path.join(directory, target)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another worker was faster
                os.symlink(os.path.join(root, name), link)
        return directory


def file_here(name: str) -> str | None:
    """A file that was sent to this worker for the job that is at work."""
    entered, root = _entered
    for known, file, executable in entered.files:
        if known == name:
            path = os.path.join(root, file)
            if executable and not os.access(path, os.X_OK):
                os.chmod(path, os.stat(path).st_mode | 0o111)  # on its way it has lost that
            return path
    return None


_entered: tuple[Surroundings, str] = (Surroundings(), "")
_set_aside: dict[tuple[Surroundings, str], dict[str, ModuleType]] = {}


@functools.cache
def _home() -> str:
    """Where the worker was started; asked before it goes anywhere else."""
    return os.getcwd()


def _leave() -> None:
    left, root = _entered
    paths = left.paths(root)
    if paths:
        sys.path[:] = [path for path in sys.path if path not in paths]
        # A copy of the list: a module that loads itself late may do so when it is looked at.
        loaded = {name: m for name, m in list(sys.modules.items()) if _is_from(m, paths)}
        for name in loaded:
            del sys.modules[name]
        _set_aside[_entered] = loaded
    if left.archives:
        os.chdir(_home())


def _is_from(module: ModuleType, paths: list[str]) -> bool:
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(str(place).startswith(f"{path}{os.sep}") for place in places for path in paths)
