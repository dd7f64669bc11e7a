"""Row E6: clean-up takes what nobody needs, and nothing else, whatever happened before."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.driver.housekeeping import Housekeeper, _Rewritten
from penstock.state.key_groups import key_group_range
from penstock.storage.checkpoint_layout import (
    CheckpointLayout,
    image_name,
    loop_path,
    merged_name,
    parse_state_file,
    segment_path,
)
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import (
    ChainLink,
    LoopState,
    Manifest,
    Origin,
    SubtaskState,
    VertexState,
)

MAX = 12


class QuickFiles(LocalFileSystem):
    """Nothing dies here, so nothing need be durable."""

    def write(self, path: str, data: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data)

    create_exclusive = write


class Histories(RuleBasedStateMachine):
    """A job's directory through commits, failures, rewritings, rescaling, roll-backs."""

    directories: Any = None

    def __init__(self) -> None:
        super().__init__()
        root = Histories.directories.mktemp("job")
        self.log = CheckpointLog(QuickFiles(), CheckpointLayout(str(root)))
        self.tokens = (f"t{number}" for number in itertools.count())
        self.manifests: dict[int, Manifest] = {}
        self.start(1)

    def start(self, retained: int) -> None:
        """The driver is new: it knows nothing of what was under way."""
        self.keeper = Housekeeper(self.log, None, retained)  # type: ignore[arg-type]
        self.savepoints: list[tuple[ExitStack, set[str]]] = []

    @property
    def newest(self) -> Manifest | None:
        return self.manifests[max(self.manifests)] if self.manifests else None

    def write(self, path: str, kind: FileKind = "segment") -> FileInfo:
        self.log.fs.write(self.log.layout.full(path), b"x")
        return FileInfo(path, 1, 1, "00", kind, (("op", "s"),), (0, MAX - 1))

    def commit(self, vertex: VertexState, loop: FileInfo | None, origin: Origin | None) -> None:
        before = self.newest
        epoch = 0 if before is None else before.epoch + 1
        base = None if before is None else before.epoch
        loops = {} if loop is None else {"head": LoopState(1, (loop,))}
        manifest = Manifest(
            "job", "Job", epoch, base, None, None, 0, {"v": vertex}, loops=loops, origin=origin
        )
        self.manifests[epoch] = self.keeper.transform(manifest)
        self.log.commit(self.manifests[epoch])

    # What may happen

    @rule(parts=st.integers(0, 2), looping=st.booleans(), parallelism=st.integers(1, 3))
    def epoch(self, parts: int, looping: bool, parallelism: int) -> None:
        newest = self.newest
        epoch = 0 if newest is None else newest.epoch + 1
        vertex = newest.vertices["v"] if newest else _vertex([SubtaskState("")] * parallelism)
        subtasks = []
        for index, subtask in enumerate(vertex.subtasks):
            token = next(self.tokens)
            paths = [segment_path(epoch, "v", index, token, part) for part in range(parts)]
            files = tuple(self.write(path) for path in paths)
            subtasks.append(subtask.with_segment(token, epoch, files))
        loop = self.write(loop_path(epoch, "v", 0, next(self.tokens), 0), "loop")
        origin = newest.origin if newest else None
        self.commit(_vertex(subtasks), loop if looping else None, origin)

    @rule(later=st.integers(0, 1))
    def failed_attempt(self, later: int) -> None:
        epoch = 0 if self.newest is None else self.newest.epoch + 1
        self.write(segment_path(epoch + later, "v", 0, next(self.tokens)))

    @precondition(lambda self: self.newest is not None)
    @rule(
        result=st.sampled_from(["image", "segment"]),
        at=st.integers(0, 2),
        ends=st.booleans(),
        epochs=st.integers(0, 3),
    )
    def rewriting(self, result: str, at: int, ends: bool, epochs: int) -> None:
        """Files are made of a subtask's; perhaps the process dies before it has told."""
        subtasks = self.newest.vertices["v"].subtasks
        index = at % len(subtasks)
        files = [file for link in subtasks[index].chain for file in link.files]
        inputs = [file for file in files if result == "image" or file.kind == "segment"]
        if not inputs:
            return
        name = (image_name if result == "image" else merged_name)(
            self.newest.epoch, "v", index, next(self.tokens)
        )
        made = self.write(f"state/{name}-00000.parquet", result)  # type: ignore[arg-type]
        if ends:
            rewritten = _Rewritten("v", index, frozenset(f.path for f in inputs), (made,), result)
            self.keeper._done.append(rewritten)
        for _ in range(epochs):
            self.epoch(1, looping=False, parallelism=1)

    @precondition(lambda self: self.newest is not None and not self.keeper._done)
    @rule(parallelism=st.integers(1, 3), retained=st.integers(1, 4))
    def rescaled(self, parallelism: int, retained: int) -> None:
        owned = []
        vertex = self.newest.vertices["v"]
        for index, subtask in enumerate(vertex.subtasks):
            groups = key_group_range(index, MAX, vertex.parallelism)
            files = [file for link in subtask.chain for file in link.files]
            owned += [part for file in files if (part := file.clipped_to(groups))]
        subtasks = []
        for index in range(parallelism):
            mine = key_group_range(index, MAX, parallelism)
            files = tuple(file for file in owned if file.overlaps(mine, None))
            chain = (ChainLink(next(self.tokens), files),) if files else ()
            subtasks.append(SubtaskState("", chain))
        self.restarted(retained)
        self.commit(_vertex(subtasks), None, self.newest.origin)

    @precondition(lambda self: self.newest is not None)
    @rule(back=st.integers(0, 3), retained=st.integers(1, 4))
    def began_from_a_retained_checkpoint(self, back: int, retained: int) -> None:
        epochs = sorted(self.manifests)
        then = self.manifests[epochs[max(0, len(epochs) - 1 - back)]]
        fork = next(self.tokens)
        self.restarted(retained)
        for directory in ("spark", "sources", "seed"):
            self.log.fs.write(self.log.layout.full(f"{directory}-{fork}/file"), b"x")
        self.commit(then.vertices["v"], None, Origin("id", "/then", fork))

    @rule(retained=st.integers(1, 4))
    def restarted(self, retained: int) -> None:
        for held, _ in self.savepoints:
            held.close()
        self.start(retained)
        self.log.fs.write(self.log.layout.full("side/0.table"), b"x")
        self.log.remove_leftovers()
        assert self.left() == self.needed()
        assert self.log.fs.list(self.log.layout.side_inputs) == []

    @precondition(lambda self: self.newest is not None)
    @rule()
    def savepoint_begun(self) -> None:
        paths = _named(self.newest)
        held = ExitStack()
        held.enter_context(self.keeper.holding(paths))
        self.savepoints.append((held, paths))

    @precondition(lambda self: self.savepoints)
    @rule()
    def savepoint_made(self) -> None:
        self.savepoints.pop(0)[0].close()

    @precondition(lambda self: self.newest is not None)
    @rule()
    def retired(self) -> None:
        self.keeper._retire()
        for epoch in sorted(self.manifests)[: -self.keeper._retained]:
            del self.manifests[epoch]
        # Nothing stays that is of no use to anybody.
        for path in self.left() - self.needed():
            name = parse_state_file(path)
            assert name is not None
            assert name.epoch >= self.newest.epoch
        origins = [manifest.origin for manifest in self.manifests.values()]
        forks = {f"{d}-{o.fork}" for o in origins if o for d in ("spark", "sources", "seed")}
        there = self.log.fs.list(self.log.layout.root)
        assert forks == {name for name in there if "-" in name}

    # What must hold

    def left(self) -> set[str]:
        return {f"state/{name}" for name in self.log.fs.list(self.log.layout.state)}

    def needed(self) -> set[str]:
        paths = set().union(*map(_named, self.manifests.values()))
        paths |= {file.path for rewritten in self.keeper._done for file in rewritten.files}
        return paths.union(*(held for _, held in self.savepoints))

    @invariant()
    def what_is_needed_is_there(self) -> None:
        assert self.needed() <= self.left()
        assert self.log.epochs() == sorted(self.manifests)
        assert self.newest is None or self.log.newest("job") == self.newest

    def teardown(self) -> None:
        for held, _ in self.savepoints:
            held.close()


def _named(manifest: Manifest) -> set[str]:
    chains = [link for s in manifest.vertices["v"].subtasks for link in s.chain]
    parts = [*chains, *manifest.loops.values()]
    return {file.path for part in parts for file in part.files}


def _vertex(subtasks: Any) -> VertexState:
    return VertexState(("op",), len(subtasks), MAX, tuple(subtasks))


def test_whatever_happened(tmp_path_factory: Any) -> None:
    Histories.directories = tmp_path_factory
    Histories.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
    Histories.TestCase().runTest()


def test_marks_go_with_their_epoch(tmp_path: Path) -> None:
    log = CheckpointLog(LocalFileSystem(), CheckpointLayout(str(tmp_path)))
    blank = Manifest("job", "Job", 0, None, None, None, 0, {})
    for epoch in range(4):
        log.commit(replace(blank, epoch=epoch))
        log.fs.write(log.layout.committed(epoch), b"")
        log.fs.write(log.layout.tried(epoch), b"")
    log.retire(2, set())
    assert log.fs.list(log.layout.epochs) == [
        f"{epoch}.{ending}" for epoch in (2, 3) for ending in ("committed", "json", "tried")
    ]


def test_nothing_goes_at_the_start_if_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    """It may name what looks like nobody's."""
    log = CheckpointLog(LocalFileSystem(), CheckpointLayout(str(tmp_path)))
    path = segment_path(0, "v", 0, "t")
    log.fs.write(log.layout.full(path), b"x")
    log.fs.write(log.layout.manifest(0), b"{")
    log.remove_leftovers()
    assert log.fs.exists(log.layout.full(path))
