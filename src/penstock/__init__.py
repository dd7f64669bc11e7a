"""Penstock: Flink's DataStream API in Python, with Spark as the engine.

Importing this package loads nothing else: workers unpickle from it all the time.
"""

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


class _AbsentModules:
    """Asked last, so only for modules that do not exist: those of PyFlink's get an explanation."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("penstock."):
            import_module("penstock.pyflink_names").refuse_module(name)


sys.meta_path.append(_AbsentModules)
