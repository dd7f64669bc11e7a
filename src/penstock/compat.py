"""Lets programs that import `pyflink` run here unchanged: `pyflink.x` is `penstock.x`.

Not a copy under another name but the same modules, so classes are the same objects, and whatever
is pickled carries Penstock's names. Workers need the aliases too, for functions that import
`pyflink` themselves; the plan tells them (`runtime/plan_file.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from penstock.errors import InvalidProgramError, RefusedImportError
from penstock.pyflink_names import ABSENT_MODULES

__all__ = ["install", "installed"]

_THEIRS = "pyflink"
_OURS = "penstock"

# What else is below `penstock` has nothing to do with PyFlink.
_SHARED = ("common", "datastream", "metrics", "version")
_EXISTING = ", ".join(f"{_THEIRS}.{part}" for part in _SHARED)


def install() -> None:
    """From now on, in this process and its jobs, `import pyflink` gives Penstock.

    Also if PyFlink is installed. It must not have been imported yet.
    """
    if installed():
        return
    theirs = sys.modules.get(_THEIRS)
    if theirs is not None:
        raise InvalidProgramError(
            f"pyflink is imported already, from {getattr(theirs, '__file__', 'elsewhere')}; call "
            "penstock.compat.install() before anything imports it"
        )
    sys.meta_path.insert(0, _Aliases())


def installed() -> bool:
    """Whether `pyflink` means Penstock in this process."""
    return any(isinstance(finder, _Aliases) for finder in sys.meta_path)


class _Aliases:
    """Finds `pyflink` and what is below it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package != _THEIRS:
            return None
        reason = ABSENT_MODULES.get(f"{_OURS}.{rest}")
        if reason is None and rest and rest.partition(".")[0] not in _SHARED:
            reason = f"of PyFlink there are {_EXISTING}"
        if reason is not None:
            raise RefusedImportError.of_module(name, reason)
        return ModuleSpec(name, _Loader(f"{_OURS}.{rest}" if rest else _OURS))


class _Loader(Loader):
    """Gives a module that is known under another name."""

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            module = import_module(self._ours)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{self._ours}.".startswith(f"{error.name}."):
                raise  # of something else, which the module needs
            raise RefusedImportError.of_module(spec.name, f"Penstock has no {self._ours}") from None
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; but the importer has put the alias's description on it."""
        module.__spec__ = self._spec
