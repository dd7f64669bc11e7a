"""State as tables: read any state of a savepoint as a Spark DataFrame, make savepoints, change
them.

Names load their module when first used: Spark's workers need neither of these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.state_processor.spark_savepoint import Savepoint
    from penstock.state_processor.spark_writer import SavepointWriter

__all__ = ["Savepoint", "SavepointWriter"]

_MODULES = {"Savepoint": "spark_savepoint", "SavepointWriter": "spark_writer"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
