"""Records on their way from the end of a loop back to its head.

They leave as payloads like those of any edge, and rest in files of the checkpoint, which the head's
subtasks read in the next epoch. Key groups deal the payloads out to those, whatever their number is
by then: a payload has one of the groups of the subtask it is for, and the groups of a file grow
with its payloads, so that these are read in the order in which they were sent. What is for all of
them is stored once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.errors import CheckpointError, CheckpointUnwritableError
from penstock.graph.partitioning import Broadcast
from penstock.runtime.payload import HEADER_SIZE, Body, Row, decode_body
from penstock.runtime.physical import JobSettings, PhysicalEdge, PhysicalPlan, Vertex
from penstock.runtime.writers import Outbox
from penstock.state.key_groups import UPPER_BOUND, key_group_range
from penstock.storage.checkpoint_layout import loop_path
from penstock.storage.crash_points import reach
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import Manifest
from penstock.storage.table_file import read_columns, write_table_file

_FOR_ONE = "records in the loop"
_FOR_ALL = "records for all in the loop"

# A file has about this many bytes; also what a reader holds.
_FILE_BYTES = 16 << 20


@dataclass
class LoopFiles:
    """The files that one subtask writes in an epoch, for all loops that it ends."""

    settings: JobSettings
    vertex: str
    subtask: int
    epoch: int = 0
    token: str = ""
    written: dict[str, list[FileInfo]] = field(default_factory=dict)
    """By the uid of the loop's head."""

    def begin(self, epoch: int, token: str) -> None:
        self.epoch, self.token = epoch, token
        self.written = {}

    def write(self, head: str, entries: list[Entry]) -> None:
        reach("task.before_loop")
        fs, root = filesystem_for(self.settings.root)
        part = sum(map(len, self.written.values()))
        path = loop_path(self.epoch, self.vertex, self.subtask, self.token, part)
        try:
            info = write_table_file(fs, root, path, entries, kind="loop")
        except CheckpointError:
            raise
        except OSError as error:
            raise CheckpointUnwritableError.at(path, error) from error
        self.written.setdefault(head, []).append(info)
        reach("task.after_loop")


class LoopOutbox(Outbox):
    """What a task sends back to the head of one loop."""

    def __init__(self, plan: PhysicalPlan, edge: PhysicalEdge, files: LoopFiles) -> None:
        super().__init__()
        head = plan.vertices[edge.target]
        self.head = head.operators[0].uid
        self._parallelism = head.parallelism
        self._for_all = isinstance(edge.partitioning, Broadcast)
        self._files = files

    def post(self, partition: int, time: int, producer: int, payload: bytes) -> None:
        if self._for_all and partition > 0:
            return
        super().post(partition, time, producer, payload)
        if self.bytes >= _FILE_BYTES:
            self.store()

    def store(self) -> None:
        """Write what has been posted since the last time."""
        if rows := self.take():
            if self._for_all:
                entries = [_entry(0, self.head, _FOR_ALL, row) for row in rows]
            else:
                entries = entries_of(self.head, self._parallelism, rows)
            self._files.write(self.head, entries)


def entries_of(head: str, parallelism: int, rows: list[Row]) -> list[Entry]:
    """The rows of a file, each for one of the subtasks."""
    receivers = Counter(row.partition for row in rows)
    seen: Counter[int] = Counter()
    entries = []
    for row in rows:
        first, last = key_group_range(row.partition, UPPER_BOUND, parallelism)
        group = first + seen[row.partition] * (last - first + 1) // receivers[row.partition]
        seen[row.partition] += 1
        entries.append(_entry(group, head, _FOR_ONE, row))
    return entries


def _entry(group: int, head: str, name: str, row: Row) -> Entry:
    """Without the payload's header, which only means something in its run."""
    key = row.sequence.to_bytes(4, "big")
    return Entry(group, head, name, key, b"", b"", row.payload[HEADER_SIZE:])


def came_back(
    settings: JobSettings, manifest: Manifest, head: Vertex, subtask: int
) -> Iterator[Body]:
    """What the loop has sent back to one subtask of its head in the manifest's epoch."""
    loop = manifest.loops.get(head.operators[0].uid)
    if loop is None:
        return
    fs, root = filesystem_for(settings.root)
    mine = key_group_range(subtask, UPPER_BOUND, head.parallelism)
    for file in loop.files:
        for_all = any(name == _FOR_ALL for _, name in file.states)
        for columns in read_columns(fs, root, file, None if for_all else mine):
            for payload in filter(None, columns.value):
                yield decode_body(payload, at=0)
