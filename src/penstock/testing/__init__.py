"""The kit for tests of your own functions and jobs; neither Spark nor a cluster is needed.

- `OperatorHarness` and `KeyedOperatorHarness` drive one function with records, clock and
  snapshots, on the runtime that jobs use; `TwoInputHarness`, `KeyedTwoInputHarness`,
  `BroadcastHarness` and `KeyedBroadcastHarness` do so for functions of two streams,
  `AsyncFunctionHarness` for asynchronous ones.
- `ScriptedSource` gives a job exactly these records in exactly these epochs, and fails on cue.
- `run_local` and `collect` run a program and return what a stream held.
"""

from penstock.testing.async_harness import AsyncFunctionHarness
from penstock.testing.clock import ManualClock
from penstock.testing.harness import KeyedOperatorHarness, OperatorHarness, Snapshot
from penstock.testing.running import collect, run_local
from penstock.testing.scripted_source import ScriptedFailure, ScriptedSource
from penstock.testing.two_input_harness import (
    BroadcastHarness,
    KeyedBroadcastHarness,
    KeyedTwoInputHarness,
    TwoInputHarness,
)

__all__ = [
    "AsyncFunctionHarness",
    "BroadcastHarness",
    "KeyedBroadcastHarness",
    "KeyedOperatorHarness",
    "KeyedTwoInputHarness",
    "ManualClock",
    "OperatorHarness",
    "ScriptedFailure",
    "ScriptedSource",
    "Snapshot",
    "TwoInputHarness",
    "collect",
    "run_local",
]
