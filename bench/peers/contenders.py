"""Who takes part: in which virtual environment, with which settings, and how it is sized."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contender:
    name: str
    title: str
    environment: str | None = None
    """Of `requirements/`; None is Penstock's own."""
    params: dict[str, Any] = field(default_factory=dict)
    """Added to the order of each of its runs."""
    cold_seconds: float = 3
    """To warm up for. A JVM compiles for a long time, Python does not."""
    measured_seconds: float = 20
    files_per_epoch: int = 0
    """Of those that work in micro-batches; 0 of all others."""
    reads_csv: bool = False
    """Then the files are there as CSV too."""


BARE = "bare"
PENSTOCK = "penstock"
PENSTOCK_FILES = "penstock-files"
PYFLINK_THREAD = "pyflink-thread"
PYFLINK_PROCESS = "pyflink-process"
TRANSFORM = "transform-with-state"
SPARK_SQL = "spark-sql"
BYTEWAX_1 = "bytewax-1"
BYTEWAX_2 = "bytewax-2"
PATHWAY = "pathway"
PENSTOCK_COLUMNAR = "penstock-columnar"
PENSTOCK_FILE_COLUMNS = "penstock-file-columns"

_JVM_SECONDS = 40.0
_LESS_JVM_SECONDS = 25.0
"""Of those for which the JVM only moves what Python has made."""
_FEW_JVM_SECONDS = 15.0
"""Of those for which it does hardly anything."""
_FILES = 16
"""Those that work in micro-batches are all the better for large ones; one takes some seconds."""
_SLOW = (20.0, 15.0)
"""Of those that spend most of their time in Python or between it and the JVM: enough to tell."""

CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(BARE, "bare Python loop, 1 core"),
        Contender(PENSTOCK, "Penstock", None, {}, _JVM_SECONDS, files_per_epoch=_FILES),
        Contender(PENSTOCK_FILES, "Penstock, files read by its tasks", None, {}, _LESS_JVM_SECONDS),
        Contender(
            PENSTOCK_COLUMNAR,
            "Penstock, columnar lane",
            None,
            {"columnar": True},
            _JVM_SECONDS,
            files_per_epoch=_FILES,
        ),
        Contender(
            PENSTOCK_FILE_COLUMNS,
            "Penstock, columnar lane, files read by its tasks",
            None,
            {"columnar": True},
            _FEW_JVM_SECONDS,
        ),
        Contender(TRANSFORM, "transformWithState", None, {}, *_SLOW, files_per_epoch=_FILES),
        Contender(
            SPARK_SQL, "Spark SQL on RocksDB", None, {}, _JVM_SECONDS, files_per_epoch=_FILES
        ),
        Contender(
            PYFLINK_THREAD,
            "PyFlink, thread mode",
            "pyflink",
            {"mode": "thread"},
            *_SLOW,
            reads_csv=True,
        ),
        Contender(
            PYFLINK_PROCESS,
            "PyFlink, process mode",
            "pyflink",
            {"mode": "process"},
            *_SLOW,
            reads_csv=True,
        ),
        Contender(BYTEWAX_1, "Bytewax, 1 process", "bytewax", {"processes": 1}),
        Contender(BYTEWAX_2, "Bytewax, 2 processes", "bytewax", {"processes": 2}),
        Contender(
            PATHWAY,
            "Pathway, 2 processes, updates merged",
            "pathway",
            {"processes": 2},
            reads_csv=True,
        ),
    )
}
