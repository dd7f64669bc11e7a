"""The kit for tests of your own functions and jobs; neither Spark nor a cluster is needed.

- `OperatorHarness` and `KeyedOperatorHarness` drive one function with records, clock and
  snapshots, on the runtime that jobs use.
- `ScriptedSource` gives a job exactly these records in exactly these epochs, and fails on cue.
- `run_local` and `collect` run a program and return what a stream held.
"""

from penstock.testing.clock import ManualClock
from penstock.testing.harness import KeyedOperatorHarness, OperatorHarness, Snapshot
from penstock.testing.running import collect, run_local
from penstock.testing.scripted_source import ScriptedFailure, ScriptedSource

__all__ = [
    "KeyedOperatorHarness",
    "ManualClock",
    "OperatorHarness",
    "ScriptedFailure",
    "ScriptedSource",
    "Snapshot",
    "collect",
    "run_local",
]
