"""Savepoints of a running job: a copy of one epoch in a directory of its own.

Every epoch is a checkpoint, so there is always one to copy: the last whose output the sinks have
committed. The copy is made in a thread of its own, while the job goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata

from penstock import __version__
from penstock.driver.spark_checkpoint import export_spark
from penstock.errors import SavepointError
from penstock.runtime.physical import JobSettings, PhysicalPlan
from penstock.state.key_groups import key_group_range
from penstock.storage.checkpoint_layout import STATE, CheckpointLayout, image_name
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import FileSystem, filesystem_for
from penstock.storage.images import write_image
from penstock.storage.manifest import (
    ChainLink,
    LoopState,
    Manifest,
    SubtaskState,
    VertexState,
)
from penstock.storage.sealing import seal
from penstock.storage.table_file import check_file

_log = logging.getLogger("penstock")

_RETRY_SECONDS = 0.01

Hold = Callable[[Collection[str]], AbstractContextManager[None]]
"""Keeps state files from being dropped while they are copied."""


def promise() -> Future[str]:
    """A future that only its maker ends: whoever holds it might cancel it else."""
    made: Future[str] = Future()
    made.set_running_or_notify_cancel()
    return made


@dataclass
class _Request:
    directory: str
    result: Future[str] = field(default_factory=promise)


class Savepoints:
    """Takes requests for savepoints of one job and carries them out, one at a time."""

    def __init__(self, job_name: str, job_id: str, layout: Callable[[], CheckpointLayout]) -> None:
        self._name = job_name
        self._job_id = job_id
        self._layout = layout
        self._lock = threading.Lock()
        self._waiting: list[_Request] = []
        self._worker: threading.Thread | None = None
        self._closed: str | None = None
        self._settled: Callable[[], Manifest | None] = lambda: None
        self._hold: Hold | None = None

    def begin(self, settled: Callable[[], Manifest | None], hold: Hold) -> None:
        """The job runs. `settled` gives the newest epoch with nothing left to commit."""
        with self._lock:
            self._settled, self._hold = settled, hold
        self._serve()

    def request(self, directory: str) -> Future[str]:
        """A savepoint below this directory: its path, when it is complete."""
        request = _Request(directory)
        with self._lock:
            if self._closed is not None:
                request.result.set_exception(SavepointError.job_ended(self._name, self._closed))
            else:
                self._waiting.append(request)
        self._serve()
        return request.result

    def _serve(self) -> None:
        """Have what is waiting carried out, once the job runs."""
        with self._lock:
            if not self._waiting or self._worker is not None or self._hold is None:
                return
            self._worker = threading.Thread(
                target=self._work, args=(self._hold,), name="penstock savepoint"
            )
            self._worker.start()

    def take_now(self, directory: str, manifest: Manifest) -> str:
        """A savepoint of an epoch, made in this thread."""
        return write_savepoint(self._layout(), manifest, self._job_id, directory)

    def close(self, status: str) -> None:
        """The job has ended: finish what is under way, refuse what is waiting."""
        with self._lock:
            self._closed = status
            left, self._waiting = self._waiting, []
        for request in left:
            request.result.set_exception(SavepointError.job_ended(self._name, status))
        worker = self._worker
        if worker is not None:
            worker.join()

    def _work(self, hold: Hold) -> None:
        while (request := self._next()) is not None:
            try:
                path = self._taken(request.directory, hold)
            except BaseException as error:
                _log.warning("no savepoint of job %s: %s", self._name, error)
                request.result.set_exception(error)
            else:
                request.result.set_result(path)

    def _next(self) -> _Request | None:
        with self._lock:
            if self._waiting:
                return self._waiting.pop(0)
            self._worker = None
            return None

    def _taken(self, directory: str, hold: Hold) -> str:
        layout = self._layout()
        fs = filesystem_for(layout.root)[0]
        while True:
            manifest = self._settled()
            if manifest is not None:
                with hold([file.path for file in manifest.files()]), self._trying_again(manifest):
                    splits = _splits(fs, layout)
                    # Else its files may have been dropped before they were held, and sources may
                    # have found more since.
                    if self._settled() is manifest:
                        return write_savepoint(layout, manifest, self._job_id, directory, splits)
            elif self._closed is not None:  # its last output could not be committed
                raise SavepointError.job_ended(self._name, self._closed)
            time.sleep(_RETRY_SECONDS)

    @contextmanager
    def _trying_again(self, manifest: Manifest) -> Iterator[None]:
        """Spark drops its own old logs as it goes on, perhaps one that was just to be read."""
        try:
            yield
        except FileNotFoundError:
            if self._settled() is manifest:
                raise


def requested_directory(settings: JobSettings, wished: str | None, own: str) -> str:
    """Where a savepoint is to be made: not among what the job keeps in its `own` directory."""
    if settings.batch:
        raise SavepointError.of_batch(settings.job_name)
    if not wished:
        raise SavepointError.no_directory()
    place, own = os.path.realpath(filesystem_for(wished)[1]), os.path.realpath(own)
    if os.path.commonpath((own, place)) == own:
        raise SavepointError.inside_the_job(wished, own)
    return wished


def blank_manifest(plan: PhysicalPlan) -> Manifest:
    """What a job is before its first epoch."""
    return Manifest(
        job_id=plan.settings.job_id,
        job_name=plan.settings.job_name,
        epoch=0,
        base=None,
        batch=None,
        offsets=None,
        created=int(time.time() * 1000),
        vertices={
            vertex.uid: VertexState(
                tuple(operator.uid for operator in vertex.operators),
                vertex.parallelism,
                vertex.max_parallelism,
                (SubtaskState(""),) * vertex.parallelism,
            )
            for vertex in plan.vertices
        },
    )


def write_savepoint(
    layout: CheckpointLayout,
    manifest: Manifest,
    job_id: str,
    directory: str,
    splits: Mapping[str, bytes] | None = None,
) -> str:
    """Copy an epoch of a job into a new directory below `directory`; its path.

    `splits` are those of the epoch, by vertex, if sources may have found more meanwhile. If it
    fails, nothing is left of it.
    """
    fs, parent = filesystem_for(directory)
    token = secrets.token_hex(6)
    root = os.path.join(parent, f"savepoint-{job_id}-{token}")
    try:
        saved = _copied(fs, layout, manifest, root, token)
        new = CheckpointLayout(root)
        _copy_sources(fs, layout, new, _splits(fs, layout) if splits is None else splits)
        export_spark(fs, layout, manifest, new.spark)
        seal(fs, root, saved)
    except BaseException:
        with contextlib.suppress(OSError):
            fs.delete_tree(root)
        raise
    _log.info("savepoint of epoch %d at %s", manifest.epoch, root)
    return root


def _splits(fs: FileSystem, layout: CheckpointLayout) -> dict[str, bytes]:
    vertices = (v for v in fs.list(layout.sources) if fs.exists(layout.splits(v)))
    return {vertex: fs.read(layout.splits(vertex)) for vertex in vertices}


def _copy_sources(
    fs: FileSystem, layout: CheckpointLayout, new: CheckpointLayout, splits: Mapping[str, bytes]
) -> None:
    for vertex, data in splits.items():
        fs.write(new.splits(vertex), data)
    for vertex in fs.list(layout.sources):
        # Not what Spark is just writing: nothing of that has been read.
        if fs.exists(layout.rows_written(vertex)):
            fs.copy_tree(layout.rows(vertex), new.rows(vertex))


def _copied(
    fs: FileSystem, layout: CheckpointLayout, manifest: Manifest, root: str, token: str
) -> Manifest:
    """Write state and records in loops; the manifest that names them."""
    vertices = {
        uid: replace(
            vertex,
            subtasks=tuple(
                _subtask(
                    fs, layout, manifest.epoch, uid, vertex, index, root, token, manifest.final
                )
                for index in range(len(vertex.subtasks))
            ),
        )
        for uid, vertex in manifest.vertices.items()
    }
    loops = {
        uid: LoopState(loop.records, tuple(_copy(fs, layout, f, root) for f in loop.files))
        for uid, loop in manifest.loops.items()
    }
    return replace(
        manifest,
        vertices=vertices,
        loops=loops,
        committables={},
        savepoint=True,
        written_by=_versions(),
        final=False,
        drained=False,
        origin=None,
        base=None,
    )


def _versions() -> dict[str, str]:
    """Of what made the savepoint."""
    found = {"penstock": __version__, "python": platform.python_version()}
    with suppress(metadata.PackageNotFoundError):
        found["pyspark"] = metadata.version("pyspark")
    return found


def _subtask(
    fs: FileSystem,
    layout: CheckpointLayout,
    epoch: int,
    uid: str,
    vertex: VertexState,
    index: int,
    root: str,
    token: str,
    ended: bool,
) -> SubtaskState:
    """`ended`: its time has come to an end, which is not so for who goes on."""
    subtask = vertex.subtasks[index]
    files = tuple(file for link in subtask.chain for file in link.files)
    groups = key_group_range(index, vertex.max_parallelism, vertex.parallelism)
    chain: tuple[ChainLink, ...] = ()
    if files:
        name = image_name(epoch, uid, index, token)
        image = write_image(fs, layout.root, files, groups, fs, root, STATE, name)
        chain = (ChainLink(f"{epoch}-{token}", tuple(image)),) if image else ()
    return replace(subtask, token="", chain=chain, watermark=None if ended else subtask.watermark)


def _copy(fs: FileSystem, layout: CheckpointLayout, file: FileInfo, root: str) -> FileInfo:
    target = os.path.join(root, file.path)
    fs.copy(layout.full(file.path), target)
    check_file(fs, root, file)
    return file
