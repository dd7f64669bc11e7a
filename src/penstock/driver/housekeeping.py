"""Work beside the epochs: images made in the background, old files dropped.

Images are made by a process of their own at low priority, from files alone; their results enter
the next manifest. No epoch waits for them.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter

from penstock.driver.image_process import Answer, ImageProcess
from penstock.runtime.physical import PhysicalPlan, Vertex
from penstock.state.key_groups import key_group_range
from penstock.storage.checkpoint_layout import STATE, image_name, merged_name
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.compaction import Compaction, CompactionPolicy, plan_compaction, urgency
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import ChainLink, Manifest, SubtaskState

_log = logging.getLogger(__name__)

_RETIRE_EVERY = 8
# What could not be rewritten is left alone for so long: others may need it too.
_REST_SECONDS = 60.0


@dataclass(frozen=True)
class _Rewritten:
    """The files of one subtask up to a version, replaced by fewer."""

    vertex: str
    subtask: int
    inputs: frozenset[str]
    files: tuple[FileInfo, ...]
    result: str


class Housekeeper:
    """Does one rewriting at a time, in a thread that waits for the process."""

    def __init__(
        self,
        log: CheckpointLog,
        plan: PhysicalPlan,
        retained: int,
        policy: CompactionPolicy | None = None,
    ) -> None:
        self._log = log
        self._plan = plan
        self._retained = max(1, retained)
        self._policy = policy or CompactionPolicy()
        self._lock = threading.Lock()
        self._done: list[_Rewritten] = []
        self._held: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._commits = 0
        self._closed = threading.Event()
        self._process = ImageProcess(self._closed)
        self._resting: dict[tuple[str, int], float] = {}
        self._growth = GrowthWatch()

    def transform(self, manifest: Manifest) -> Manifest:
        """Put finished rewritings into a manifest that is about to be committed."""
        with self._lock:
            done, self._done = self._done, []
        for rewritten in done:
            manifest = _with(manifest, rewritten)
        return manifest

    def after_commit(self, manifest: Manifest) -> None:
        self._commits += 1
        if self._thread is not None and self._thread.is_alive():
            return
        if self._commits >= _RETIRE_EVERY:
            self._commits = 0
            self._retire()
        if not self._done:  # else the same would be rewritten once more
            self._start(manifest)

    def close(self) -> None:
        """Stop what is under way; its files are dropped later, as nothing names them."""
        self._closed.set()
        self._process.close()
        if self._thread is not None:
            self._thread.join()
        self._process.end()

    @contextmanager
    def holding(self, paths: Collection[str]) -> Iterator[None]:
        """Keep files meanwhile that no retained epoch may need any more."""
        with self._lock:
            self._held.update(paths)
        try:
            yield
        finally:
            with self._lock:
                self._held.subtract(paths)
                self._held = +self._held  # without what nobody holds any more

    def _retire(self) -> None:
        """Drop old files; not while new ones are made, since nothing names those yet."""
        with self._lock:
            kept = {file.path for rewritten in self._done for file in rewritten.files}
            kept.update(self._held)
            self._log.retire(self._retained, kept)

    def _start(self, manifest: Manifest) -> None:
        """Rewrite what needs it most: a fixed order would let the last ones wait for ever."""
        found: list[tuple[float, str, int, SubtaskState, Compaction]] = []
        now = time.monotonic()
        for vertex in self._plan.vertices:
            for index, state in enumerate(manifest.vertices[vertex.uid].subtasks):
                if self._resting.get((vertex.uid, index), now) > now:
                    continue
                files = [file for link in state.chain for file in link.files]
                compaction = self._compaction(vertex, index, state, files)
                if compaction is not None:
                    need = urgency(files, self._policy)
                    found.append((need, vertex.uid, index, state, compaction))
        if found:
            _, uid, index, state, compaction = max(found, key=itemgetter(0))
            self._run(uid, index, state, compaction, manifest.epoch)

    def _compaction(
        self, vertex: Vertex, index: int, state: SubtaskState, files: list[FileInfo]
    ) -> Compaction | None:
        groups = key_group_range(index, vertex.max_parallelism, vertex.parallelism)
        compaction = plan_compaction(files, self._policy, groups) if files else None
        if compaction is not None and not _in_whole_links(state, compaction):
            return replace(compaction, result="image", inputs=tuple(files))
        return compaction

    def _run(
        self, vertex: str, subtask: int, state: SubtaskState, compaction: Compaction, epoch: int
    ) -> None:
        namer = image_name if compaction.result == "image" else merged_name
        name = namer(epoch, vertex, subtask, (state.version or "0-0").rpartition("-")[2])
        order = {
            "root": self._log.layout.root,
            "compaction": compaction.to_json(),
            "out_dir": STATE,
            "name": name,
        }

        def work() -> None:
            try:
                answer = self._in_process(order)
            except OSError as error:
                self._resting[vertex, subtask] = time.monotonic() + _REST_SECONDS
                _log.warning(
                    "no image was made of subtask %d of %s (%s); it is tried again in %d s",
                    subtask,
                    vertex,
                    error,
                    _REST_SECONDS,
                )
                return
            if answer is not None:
                files = tuple(FileInfo.from_json(file) for file in answer["files"])
                inputs = frozenset(file.path for file in compaction.inputs)
                with self._lock:
                    self._done.append(_Rewritten(vertex, subtask, inputs, files, compaction.result))
                if compaction.result == "image":
                    self._growth.seen(vertex, subtask, files)

        self._thread = threading.Thread(target=work, name="penstock images", daemon=True)
        self._thread.start()

    def _in_process(self, order: Mapping[str, object]) -> Answer | None:
        """What the process answers, None if it was stopped; OSError if it failed."""
        return None if self._closed.is_set() else self._process.ask(order)


class GrowthWatch:
    """Warns, once per vertex, of state that has grown from image to image without end."""

    def __init__(self, images: int = 4, entries: int = 100_000) -> None:
        self._images = images
        self._entries = entries
        self._rows: dict[tuple[str, int], list[int]] = {}
        self._warned: set[str] = set()

    def seen(self, vertex: str, subtask: int, files: tuple[FileInfo, ...]) -> None:
        """An image was made; its rows are the entries that the subtask holds."""
        history = self._rows.setdefault((vertex, subtask), [])
        history.append(sum(file.rows for file in files))
        del history[: -self._images]
        growing = len(history) == self._images and all(
            before < after for before, after in itertools.pairwise(history)
        )
        if growing and history[-1] >= self._entries and vertex not in self._warned:
            self._warned.add(vertex)
            names = sorted({name for file in files for _, name in file.states})
            _log.warning(
                "state %s of %s only grows: subtask %d went from %d to %d entries over %d images; "
                "if keys come and go, let it expire with StateTtlConfig or clear() it",
                ", ".join(names),
                vertex,
                subtask,
                history[0],
                history[-1],
                self._images,
            )


def _in_whole_links(subtask: SubtaskState, compaction: Compaction) -> bool:
    """Whether the files to be rewritten are those of some links, none left half."""
    inputs = {file.path for file in compaction.inputs}
    parts = [{file.path for file in link.files} for link in subtask.chain]
    return all(part <= inputs or part.isdisjoint(inputs) for part in parts)


def _with(manifest: Manifest, rewritten: _Rewritten) -> Manifest:
    vertex = manifest.vertices[rewritten.vertex]
    subtasks = list(vertex.subtasks)
    subtasks[rewritten.subtask] = _shortened(subtasks[rewritten.subtask], rewritten)
    changed = replace(vertex, subtasks=tuple(subtasks))
    return replace(manifest, vertices={**manifest.vertices, rewritten.vertex: changed})


def _shortened(subtask: SubtaskState, rewritten: _Rewritten) -> SubtaskState:
    """The chain with the links whose files were rewritten replaced by one."""
    before: list[ChainLink] = []
    within: list[ChainLink] = []
    after: list[ChainLink] = []
    for link in subtask.chain:
        paths = {file.path for file in link.files}
        if paths <= rewritten.inputs:
            within.append(link)
        else:
            (after if within else before).append(link)
    if not within or (before and rewritten.result == "image"):
        # An image holds all from the beginning; on top of another it would not say what is gone.
        return subtask
    covers: tuple[str, ...] = ()
    if rewritten.result == "segment":
        known = [link.version for link in before[-1:]]
        known += [v for link in within for v in (*link.covers, link.version)]
        covers = tuple(dict.fromkeys(known))
    link = ChainLink(within[-1].version, rewritten.files, covers)
    return replace(subtask, chain=(*before, link, *after))
