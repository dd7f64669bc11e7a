"""Looks into a job's checkpoint: what state an epoch left behind."""

from __future__ import annotations

from collections import Counter

from penstock.state.key_groups import key_group_range
from penstock.storage.catch_up import catch_up
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import filesystem_for
from penstock.storage.memory_store import MemoryStore


def stored_entries(checkpoints: str, job_id: str) -> Counter[str]:
    """How many entries each vertex has in the newest epoch, by the uid of its first operator."""
    fs, directory = filesystem_for(checkpoints)
    layout = CheckpointLayout.of_job(directory, job_id)
    log = CheckpointLog(fs, layout)
    found: Counter[str] = Counter()
    for uid, vertex in log.read(log.epochs()[-1]).vertices.items():
        for index, subtask in enumerate(vertex.subtasks):
            if subtask.version is not None:
                groups = key_group_range(index, vertex.max_parallelism, vertex.parallelism)
                links = [(link.version, link.files) for link in subtask.chain]
                covers = {link.version: link.covers for link in subtask.chain if link.covers}
                store = MemoryStore()
                catch_up(
                    store, fs, layout.root, links, subtask.version, None, groups, covers=covers
                )
                found[uid] += sum(1 for _ in store.scan(b""))
    return +found
