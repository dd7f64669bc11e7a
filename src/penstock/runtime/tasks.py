"""What a stage's task does with its rows: open payloads, pass on the rest, acknowledge.

The same functions serve both executors; only where rows come from and go to differs. They yield
lists of rows as they become ready. An error does not escape: it travels to the driver inside an
acknowledgement, so that the user sees it without a pile of foreign frames.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import time
from collections.abc import Callable, Iterable, Iterator

from penstock.datastream.connectors.base import Split
from penstock.errors import PenstockError
from penstock.runtime.codec import dump
from penstock.runtime.epoch import Acknowledgement, EpochOrder, subtask_name
from penstock.runtime.operators.sources import (
    OpenPythonSource,
    PythonSource,
    SourceRecords,
    SplitPosition,
    found_splits,
)
from penstock.runtime.payload import (
    ACKNOWLEDGEMENT,
    HEADER_SIZE,
    RECORDS,
    Row,
    make_header,
    read_header,
)
from penstock.runtime.physical import PhysicalPlan, Vertex
from penstock.runtime.profiling.recorder import Recorder
from penstock.runtime.profiling.samples import TaskProfile
from penstock.runtime.profiling.watching import Watching
from penstock.runtime.vertex_task import VertexTask
from penstock.runtime.watermarks import MIN_TIMESTAMP
from penstock.runtime.writers import ChangeableRecords

# Rows are handed on when so many bytes are ready.
_HAND_OVER_BYTES = 1 << 20

# Instances that wait for their next epoch, with the time they began to wait. Those of jobs that
# are gone would wait for ever, in a worker that serves many.
_idle: dict[tuple[str, int, int, int], tuple[VertexTask, float]] = {}
_LONGEST_WAIT_SECONDS = 900.0


def close_idle(run_id: str, committed: int | None) -> None:
    """Nobody will ask for the instances of a run any more, whose last epoch is given."""
    for key in list(_idle):
        if key[:2] == (run_id, os.getpid()):
            task, _ = _idle.pop(key)
            _drop(task, committed)


def _drop(task: VertexTask, committed: int | None) -> None:
    """Close it; what it did last may be in no epoch that was committed."""
    with contextlib.suppress(Exception):
        if committed is None or task.epoch > committed:
            task.abort()
        else:
            task.close()


def run_stage(
    plan: PhysicalPlan, level: int, partition: int, order: EpochOrder, rows: Iterable[Row]
) -> Iterator[list[Row]]:
    """A stage behind an exchange: all vertices of its level, for one partition."""
    vertices = [v for v in plan.at_level(level) if partition < v.parallelism]
    attempt = _Attempt(plan, vertices, partition, order)
    targets = {index: v.index for v in vertices for index in v.inputs}

    def work() -> Iterator[None]:
        for vertex in vertices if order.farewell is None else ():
            if vertex.feedback and not order.skip:
                yield from attempt.task(vertex.index).take_turn()
        for row in rows:
            header = read_header(row.payload)
            target = targets.get(header.edge) if header.kind == RECORDS else None
            if target is None:
                attempt.passing.append(row)
            else:
                attempt.saw(target, header.vertex, header.subtask, header.token.hex())
                attempt.task(target).consume(header.edge, header.subtask, row.payload)
            yield

    return attempt.run(work)


def run_python_sources(plan: PhysicalPlan, subtask: int, order: EpochOrder) -> Iterator[list[Row]]:
    """One subtask of every Python source; at the end of the job, of every source."""
    vertices = [
        v
        for v in plan.at_level(0)
        if (order.farewell is not None or isinstance(v.operators[0].operator, PythonSource))
        and subtask < v.parallelism
    ]
    attempt = _Attempt(plan, vertices, subtask, order)

    def work() -> Iterator[None]:
        for vertex in vertices if order.farewell is None else ():
            yield from _read_splits(plan, vertex, attempt)

    return attempt.run(work)


def _read_splits(plan: PhysicalPlan, vertex: Vertex, attempt: _Attempt) -> Iterator[None]:
    uid = vertex.operators[0].uid
    order = attempt.order
    settings = plan.settings
    if order.final and not settings.batch:
        return
    known = [*enumerate(plan.splits[uid]), *found_splits(uid, order)]
    splits = [
        _position(uid, split, order)
        for index, split in known
        if index % vertex.parallelism == attempt.subtask
    ]
    task = attempt.task(vertex.index)
    source = task.operators[0]
    assert isinstance(source, OpenPythonSource)
    if settings.batch:
        reading = source.read_all(splits, order.skip, task.count)
    else:
        most, seconds = settings.max_records_per_epoch, settings.epoch_seconds
        if order.most_records is not None:
            most = min(most, order.paced_records.get(uid, order.most_records))
        if order.read_seconds is not None:
            seconds = min(seconds, order.read_seconds)
        reading = source.read(splits, most, order.skip, task.count, seconds)
    for read in reading:
        attempt.positions.setdefault(uid, {})[read.split.split_id] = read
        yield
    if source.cut_off:
        attempt.cut_off.add(vertex.index)


def _position(uid: str, split: Split, order: EpochOrder) -> SplitPosition:
    known = order.positions.get(f"{uid}|{split.split_id}")
    if known is None:
        return SplitPosition(split, split.position)
    text, finished = known
    return SplitPosition(split, SplitPosition.position_from(text), finished)


def run_spark_source(
    plan: PhysicalPlan,
    vertex: Vertex,
    subtask: int,
    order: EpochOrder,
    batches: Iterable[SourceRecords],
) -> Iterator[list[Row]]:
    """One subtask of a Spark source: its records come in batches, each with their number."""
    attempt = _Attempt(plan, [vertex], subtask, order)

    def work() -> Iterator[None]:
        task = attempt.task(vertex.index)
        for count, timestamps, records, shape, new_part in batches:
            if new_part:
                task.begin_part()
            task.count(count)
            if not order.skip:
                task.records_are(shape)
                task.run_stamped(timestamps, records)
            yield

    return attempt.run(work)


class _Attempt:
    """One try at one task: its token, its task instances, what it consumed."""

    def __init__(
        self, plan: PhysicalPlan, vertices: list[Vertex], subtask: int, order: EpochOrder
    ) -> None:
        self.order = order
        self.subtask = subtask
        self.token = secrets.token_hex(8)
        self.passing: list[Row] = []
        self.positions: dict[str, dict[str, SplitPosition]] = {}
        self.cut_off: set[int] = set()
        """The vertices whose sources might have read more."""
        self._plan = plan
        self._vertices = vertices
        self._tasks: dict[int, VertexTask] = {}
        self._consumed: dict[int, dict[str, str]] = {v.index: {} for v in vertices}
        self._received: dict[int, dict[str, int]] = {v.index: {} for v in vertices}
        self._current = vertices[0] if vertices else None
        self._started = time.perf_counter()
        self._watching: Watching | None = None

    def saw(self, target: int, vertex: int, subtask: int, token: str) -> None:
        consumed = self._consumed[target]
        producer = subtask_name(vertex, subtask)
        received = self._received[target]
        received[producer] = received.get(producer, 0) + 1
        known = consumed.setdefault(producer, token)
        if known != token:
            # Two attempts of one producer in one partition: reported, and refused by the driver.
            consumed[f"{producer}?"] = token

    def task(self, vertex: int) -> VertexTask:
        self._current = self._plan.vertices[vertex]
        found = self._tasks.get(vertex)
        if found is None:
            found = self._tasks[vertex] = self._take(self._current)
            found.begin(self.order, self.token)
        return found

    def run(self, work: Callable[[], Iterator[None]]) -> Iterator[list[Row]]:
        recorder = self._watched()
        try:
            for _ in work():
                if self._ready() >= _HAND_OVER_BYTES or len(self.passing) >= 64:
                    yield self._rows()
            acknowledgements: list[Acknowledgement] = []
            if self.order.farewell is not None:
                self._say_farewell(self.order.farewell)
            else:
                acknowledgements.extend(self._end(vertex) for vertex in self._vertices)
                self._give_back()
        except ChangeableRecords as found:
            acknowledgements = [self._failed(freeze=found.edge)]
        except (Exception, SystemExit) as error:
            acknowledgements = [self._failed(error=error)]
        finally:
            if self._watching is not None:
                self._watching.end()
        if recorder is not None and acknowledgements:
            acknowledgements[0].profile = self._profile(recorder)
        rows = self._rows()
        rows.extend(self._acknowledge(a) for a in acknowledgements)
        yield rows

    def _watched(self) -> Recorder | None:
        """Whoever notes what this task does, if the job is profiled."""
        interval = self._plan.settings.profile_interval
        if not interval or not self._vertices:
            return None
        recorder = Recorder(
            _Attempt.run.__code__,
            lambda: [task.attribution for task in list(self._tasks.values())],
            self._at,
        )
        self._watching = Watching(recorder, interval)
        return recorder

    def _profile(self, recorder: Recorder) -> TaskProfile:
        for task in self._tasks.values():
            if task.counts is not None:
                recorder.profile.count(task.counts.take())
        return recorder.profile

    def _at(self) -> tuple[int, str | None]:
        vertex = self._current or self._vertices[0]
        return vertex.index, vertex.operators[0].uid

    def _ready(self) -> int:
        return sum(task.outbox.bytes for task in self._tasks.values())

    def _rows(self) -> list[Row]:
        rows, self.passing = self.passing, []
        for task in self._tasks.values():
            rows.extend(task.outbox.take())
        return rows

    def _end(self, vertex: Vertex) -> Acknowledgement:
        acknowledgement = self.task(vertex.index).end()
        acknowledgement.consumed = self._consumed[vertex.index]
        acknowledgement.received = self._received[vertex.index]
        acknowledgement.cut_off = vertex.index in self.cut_off
        for uid, positions in self.positions.items():
            if uid == vertex.operators[0].uid:
                acknowledgement.positions = {
                    split: (position.to_text(), position.finished)
                    for split, position in positions.items()
                }
        acknowledgement.seconds = time.perf_counter() - self._started
        return acknowledgement

    def _failed(self, error: BaseException | None = None, freeze: int = -1) -> Acknowledgement:
        vertex = self._current
        acknowledgement = Acknowledgement(vertex.index if vertex else -1, self.subtask, self.token)
        if error is None:
            acknowledgement.freeze_edges = [freeze]
        else:
            if vertex is not None and vertex.index in self._tasks:
                error = self._tasks[vertex.index].explain(error)
            acknowledgement.error = _pickled(error)
        for task in self._tasks.values():
            with contextlib.suppress(Exception):
                task.abort() if self.order.farewell is None else task.close()
        self._tasks.clear()
        return acknowledgement

    def _acknowledge(self, acknowledgement: Acknowledgement) -> Row:
        header = make_header(
            ACKNOWLEDGEMENT, 0, max(acknowledgement.vertex, 0), self.subtask, bytes(8)
        )
        producer = max(acknowledgement.vertex, 0) << 32 | self.subtask
        # Passed on unopened by later stages, in whatever partition: 0 always exists.
        return Row(0, MIN_TIMESTAMP, producer, 1 << 30, header + pickle.dumps(acknowledgement, 5))

    def _take(self, vertex: Vertex) -> VertexTask:
        """The instance that made this subtask's part of the base, or a new one."""
        idle, _ = _idle.pop(self._key(vertex), (None, 0.0))
        if idle is not None:
            # After a restart of the job every function is opened anew, as in Flink.
            if self._is_of_base(idle) and idle.attempt == self.order.attempt:
                return idle
            # It did another attempt than was committed, or belongs to the job before a restart.
            _drop(idle, self.order.base)
        with self._watching.opening() if self._watching else contextlib.nullcontext():
            return VertexTask(self._plan, vertex, self.subtask, self.order)

    def _is_of_base(self, task: VertexTask) -> bool:
        """Whether what it did last is in the base."""
        return self.order.tokens.get(subtask_name(task.vertex.index, task.subtask)) == task.version

    def _give_back(self) -> None:
        """Keep them for their next epoch; after the last one, only those who want to hear of it."""
        now = time.monotonic()
        for task in self._tasks.values():
            if self.order.final and not task.listening:
                self._current = task.vertex
                task.close()
            else:
                _idle[self._key(task.vertex)] = (task, now)
        for key, (task, since) in list(_idle.items()):
            if self._outdated(key, task) or now - since > _LONGEST_WAIT_SECONDS:
                _idle.pop(key, None)  # another job of this process may have seen to it
                with contextlib.suppress(Exception):
                    task.close()

    def _say_farewell(self, vertices: tuple[int, ...]) -> None:
        """Nothing is processed: who listens is told of the last epoch, and closed."""
        moved = False
        for vertex in self._vertices:
            if vertex.index in vertices:
                moved = moved or self._key(vertex) not in _idle
                self._tasks[vertex.index] = self._take(vertex)
        for task in self._tasks.values():
            self._told(task)
        if moved:
            # Then other processes may be asked for those that are here.
            for key in [key for key in _idle if key[0] == self._plan.settings.run_id]:
                task, _ = _idle.pop(key)
                if self._is_of_base(task):
                    self._told(task)
                else:
                    _drop(task, self.order.base)

    def _told(self, task: VertexTask) -> None:
        self._current = task.vertex
        task.tell_complete(self.order)
        task.close()

    def _outdated(self, key: tuple[str, int, int, int], task: VertexTask) -> bool:
        """Whether the subtask has moved on without this instance: it will not be asked again."""
        if key[0] != self._plan.settings.run_id or task.epoch >= self.order.epoch:
            return False
        return not self._is_of_base(task)

    def _key(self, vertex: Vertex) -> tuple[str, int, int, int]:
        return (self._plan.settings.run_id, os.getpid(), vertex.index, self.subtask)


def _pickled(error: BaseException) -> bytes:
    try:
        data = dump(error)
        pickle.loads(data)
        return data
    except Exception:
        return dump(PenstockError(f"{type(error).__name__}: {error}"))


def read_acknowledgement(payload: bytes) -> Acknowledgement:
    found: Acknowledgement = pickle.loads(payload[HEADER_SIZE:])
    return found
