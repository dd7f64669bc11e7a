"""Makes a harness write its changes early, in the middle of an epoch, as a task does whose memory
is short."""

from __future__ import annotations

from typing import Any, TypeVar

from penstock.storage.entries import Entry
from penstock.testing.harness import Harness

H = TypeVar("H", bound=Harness)


def spilling(harness: H, keep: int) -> H:
    """The same harness, of whose state at most `keep` objects stay in memory between two runs."""
    task, around = harness._task.state, harness._around
    keyed_state = task.keyed_state
    assert keyed_state is not None
    parts: list[list[Entry]] = []

    def write_segment(acknowledgement: Any, keyed_state: Any) -> None:
        around.state_types.update(keyed_state.types())
        for part in [*parts, keyed_state.snapshot()]:
            changes = [(entry.packed(), entry.value) for entry in part]
            around.store.apply(changes, str(around.epoch))
        parts.clear()

    keyed_state._keep = keep
    chunk_number = lambda: around.epoch << 16 | len(parts)
    keyed_state._chunk_number = chunk_number
    for table in keyed_state._tables:
        if hasattr(table, "_chunk_number"):
            table._chunk_number = chunk_number
    task._write = lambda entries: parts.append(entries) if entries else None  # type: ignore[method-assign]
    task._write_segment = write_segment  # type: ignore[method-assign]
    return harness
