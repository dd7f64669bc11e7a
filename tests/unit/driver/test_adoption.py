"""Fitting a checkpoint to the program that goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.driver.adoption import adopt
from penstock.errors import CheckpointMismatchError
from penstock.runtime.physical import PhysicalPlan
from penstock.state.key_groups import key_group_range
from penstock.state.redistribution import (
    COPY,
    OWN,
    SPLIT,
    UNION,
    StoredState,
    as_text,
    kept_by,
    packed,
)
from penstock.storage.catch_up import catch_up
from penstock.storage.checkpoint_layout import segment_path
from penstock.storage.entries import Entry
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import (
    ChainLink,
    Manifest,
    SourceState,
    SparkSourceName,
    SubtaskState,
    VertexState,
)
from penstock.storage.memory_store import MemoryStore
from penstock.storage.table_file import write_table_file

PlanOf = Callable[..., PhysicalPlan]
MAX = 8


class Keyed:
    """A job with one value per key group, whose state is written and moved for real."""

    def __init__(self, root: str, plan_of: PlanOf, token: str = "t") -> None:
        self.root = root
        self._token = token
        self._plan_of = plan_of
        self._fs = LocalFileSystem()
        self.expected: dict[int, bytes] = {}
        self.manifest: Manifest | None = None
        self.plan: PhysicalPlan | None = None

    def start(self, parallelism: int) -> bool:
        """Go on with so many subtasks; whether the checkpoint had to be changed for it."""
        self.plan = self._plan_of(parallelism=parallelism, max_parallelism=MAX, root=self.root)
        if self.manifest is None:
            none = (SubtaskState(""),) * parallelism
            vertices = {
                v.uid: VertexState(tuple(o.uid for o in v.operators), parallelism, MAX, none)
                for v in self.plan.vertices
            }
            self.manifest = Manifest("job", "Job", 0, None, None, None, 0, vertices)
            return False
        self.manifest, changed = adopt(self.manifest, self.plan, self.root)
        return changed

    def epoch(self, groups: set[int]) -> None:
        """Change the values of these key groups; every third epoch removes them."""
        assert self.manifest is not None
        epoch = self.manifest.epoch + 1
        state = self.manifest.vertices["count"]
        subtasks = []
        for index, subtask in enumerate(state.subtasks):
            lo, hi = key_group_range(index, MAX, state.parallelism)
            mine = sorted(g for g in groups if lo <= g <= hi)
            files = ()
            if mine:
                entries = [_entry(group, epoch) for group in mine]
                path = segment_path(epoch, "count", index, f"{self._token}{epoch}")
                files = (write_table_file(self._fs, self.root, path, entries),)
            subtasks.append(subtask.with_segment(f"{self._token}{epoch}", epoch, files))
        for group in groups:
            self.expected.pop(group, None)
            if (value := _value(epoch)) is not None:
                self.expected[group] = value
        self._replace(epoch, subtasks)

    def image(self, subtask: int) -> None:
        """What the background does, and at its simplest: one image for a subtask's chain."""
        assert self.manifest is not None
        state = self.manifest.vertices["count"]
        before = state.subtasks[subtask]
        if before.version is None:
            return
        groups = key_group_range(subtask, MAX, state.parallelism)
        entries = [
            _entry(group, int(value))
            for group, value in self.expected.items()
            if groups[0] <= group <= groups[1]
        ]
        files = ()
        if entries:
            path = f"state/{self.manifest.epoch}-{subtask}.image-00000.parquet"
            files = (write_table_file(self._fs, self.root, path, entries, kind="image"),)
        subtasks = list(state.subtasks)
        subtasks[subtask] = SubtaskState(before.token, (ChainLink(before.version, files),))
        self._replace(self.manifest.epoch + 1, subtasks)

    def found(self) -> dict[int, bytes]:
        """What the subtasks' stores hold, all together."""
        assert self.manifest is not None
        found: dict[int, bytes] = {}
        state = self.manifest.vertices["count"]
        for index, subtask in enumerate(state.subtasks):
            if subtask.version is None:
                continue
            store = MemoryStore()
            groups = key_group_range(index, MAX, state.parallelism)
            chain = [(link.version, link.files) for link in subtask.chain]
            catch_up(store, self._fs, self.root, chain, subtask.version, {"count"}, groups)
            for key, value in store.scan(b""):
                group = int.from_bytes(key[:2], "big")
                assert groups[0] <= group <= groups[1]
                assert group not in found
                found[group] = value
        return found

    def _replace(self, epoch: int, subtasks: list[SubtaskState]) -> None:
        assert self.manifest is not None
        state = self.manifest.vertices["count"]
        changed = VertexState(state.operators, state.parallelism, MAX, tuple(subtasks))
        vertices = {**self.manifest.vertices, "count": changed}
        self.manifest = Manifest("job", "Job", epoch, None, None, None, 0, vertices)


def _entry(group: int, epoch: int) -> Entry:
    return Entry(group, "count", "s", b"k", b"", b"", _value(epoch))


def _value(epoch: int) -> bytes | None:
    return None if epoch % 3 == 0 else b"%d" % epoch


@pytest.fixture
def job(tmp_path, plan_of) -> Keyed:
    return Keyed(str(tmp_path), plan_of)


# The same program


def test_the_same_layout_is_left_untouched(job):
    job.start(2)
    job.epoch({0, 3, 7})
    before = job.manifest
    assert not job.start(2)
    assert job.manifest is before


def test_another_place_of_a_stateless_operator_is_no_change(job, plan_of):
    job.start(2)
    job.epoch({1})
    manifest, changed = adopt(job.manifest, plan_of(parallelism=2, max_parallelism=MAX), "/r")
    assert not changed
    assert manifest is job.manifest


# Another parallelism


@pytest.mark.parametrize("after", [1, 3, 8])
def test_another_parallelism_links_every_file_with_a_part_of_the_state(job, after):
    job.start(2)
    job.epoch({0, 1, 5, 7})
    job.epoch({1, 7})
    before = job.manifest
    assert job.start(after)
    assert (job.manifest.epoch, job.manifest.base) == (before.epoch + 1, before.epoch)
    state = job.manifest.vertices["count"]
    assert len(state.subtasks) == state.parallelism == after
    for index, subtask in enumerate(state.subtasks):
        assert len(subtask.chain) <= 1
        assert subtask.token == ""
        for file in (file for link in subtask.chain for file in link.files):
            assert file.overlaps(key_group_range(index, MAX, after), {"count"})
    assert job.found() == job.expected


def test_a_subtask_without_state_has_no_chain(job):
    job.start(1)
    job.epoch({0})
    job.start(4)
    chains = [subtask.chain for subtask in job.manifest.vertices["count"].subtasks]
    assert [len(chain) for chain in chains] == [1, 0, 0, 0]


def test_versions_differ_from_those_before(job):
    """Else a store of an earlier layout would be taken for one of this."""
    job.start(2)
    job.epoch(set(range(MAX)))
    seen = set()
    for parallelism in (3, 2, 3, 2):
        job.start(parallelism)
        versions = {s.version for s in job.manifest.vertices["count"].subtasks}
        assert not versions & seen
        seen |= versions


def test_versions_differ_from_those_of_another_life(tmp_path, plan_of):
    """The same job, begun afresh, changed at the same epoch in the same way: local stores of the
    first must not be taken for the second's."""
    versions = []
    for token in ("a", "b"):
        job = Keyed(str(tmp_path), plan_of, token)
        job.start(1)
        job.epoch(set(range(MAX)))
        job.start(2)
        versions.append({s.version for s in job.manifest.vertices["count"].subtasks})
    assert len(versions[0] | versions[1]) == 4


def test_versions_say_which_part_of_a_file_is_taken(job, plan_of):
    job.start(1)
    job.epoch(set(range(MAX)))
    seen = set()
    for parallelism in (2, 3, 4):
        plan = plan_of(parallelism=parallelism, max_parallelism=MAX, root=job.root)
        manifest, _ = adopt(job.manifest, plan, job.root)
        for index, subtask in enumerate(manifest.vertices["count"].subtasks):
            seen.add((key_group_range(index, MAX, parallelism), subtask.version))
    assert len({groups for groups, _ in seen}) == len({version for _, version in seen}) == len(seen)


def test_files_shared_since_an_earlier_change_do_not_hide_what_came_later(job):
    job.start(2)
    job.epoch({4, 5, 6, 7})
    job.start(3)
    job.epoch({4, 5})
    job.epoch({6, 7})
    job.start(1)
    assert job.found() == job.expected


def test_nor_what_an_image_holds(job):
    """One of two subtasks that share a file has replaced it by an image of its own part."""
    job.start(1)
    job.epoch({0, 7})
    job.start(2)
    job.epoch({0})
    job.image(0)
    job.start(1)
    assert job.found() == job.expected


some_groups = st.sets(st.integers(0, MAX - 1), min_size=1)
rounds = st.tuples(st.integers(1, MAX), some_groups, st.sets(st.integers(0, MAX - 1)), some_groups)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=st.lists(rounds, min_size=2, max_size=5))
def test_state_is_the_same_after_any_changes(tmp_path_factory, plan_of, history):
    job = Keyed(str(tmp_path_factory.mktemp("job")), plan_of)
    for parallelism, first, images, second in history:
        job.start(parallelism)
        job.epoch(first)
        for subtask in images:
            if subtask < parallelism:
                job.image(subtask)
        job.epoch(second)
        assert job.found() == job.expected
    job.start(1)
    assert job.found() == job.expected


# What cannot go on


def test_state_that_no_operator_takes_is_refused(job, plan_of):
    job.start(2)
    job.epoch({1})
    renamed = plan_of(parallelism=2, max_parallelism=MAX, uid="renamed")
    with pytest.raises(CheckpointMismatchError, match=r"(?s)- count: state s.*uids they had"):
        adopt(job.manifest, renamed, "/r")


def test_positions_that_no_source_takes_are_refused(job, plan_of):
    job.start(2)
    job.epoch({1})
    manifest = Manifest(
        **{**vars(job.manifest), "sources": {"gone": SourceState({"0": ("", False)})}}
    )
    with pytest.raises(CheckpointMismatchError, match="gone"):
        adopt(manifest, plan_of(parallelism=2, max_parallelism=MAX), "/r")


def test_another_max_parallelism_is_refused(job, plan_of):
    job.start(2)
    job.epoch({1})
    with pytest.raises(CheckpointMismatchError, match=r"set_max_parallelism\(8\)"):
        adopt(job.manifest, plan_of(parallelism=2, max_parallelism=16), "/r")


def test_max_parallelism_may_change_while_there_is_no_state(job, plan_of):
    job.start(2)
    adopt(job.manifest, plan_of(parallelism=2, max_parallelism=16), "/r")


def test_a_new_stateless_operator_in_the_chain_keeps_the_state(job, plan_of):
    job.start(2)
    job.epoch({0, 7})
    longer = plan_of(parallelism=2, max_parallelism=MAX, extra_uid="added")
    job.manifest, changed = adopt(job.manifest, longer, "/r")
    assert changed
    assert job.found() == job.expected


# What operators keep beside keyed state


def _with_kept(manifest: Manifest, vertex: str, kept: list[dict[str, str]]) -> Manifest:
    state = manifest.vertices[vertex]
    subtasks = tuple(
        replace(subtask, operators=parts)
        for subtask, parts in zip(state.subtasks, kept, strict=True)
    )
    vertices = {**manifest.vertices, vertex: replace(state, subtasks=subtasks)}
    return replace(manifest, vertices=vertices)


def _kept(rule: str, *elements: bytes) -> str:
    data = packed({"state": StoredState(rule, {"kind": rule, "type": "any"}, elements)})
    assert data is not None
    return as_text(data)


def _elements(manifest: Manifest, uid: str = "count") -> list[tuple[bytes, ...]]:
    """Of each subtask."""
    subtasks = manifest.vertices["count"].subtasks
    return [state.elements for s in subtasks for state in kept_by(s, uid).values()]


@pytest.mark.parametrize(
    ("rule", "after", "expected"),
    [
        (OWN, 1, [(b"a", b"b", b"c")]),
        (OWN, 3, [(b"a", b"b", b"c")] * 3),
        (COPY, 1, [(b"a",)]),
        (COPY, 3, [(b"a",), (b"b", b"c"), (b"a",)]),
        (SPLIT, 1, [(b"a", b"b", b"c")]),
        (SPLIT, 3, [(b"a",), (b"b",), (b"c",)]),
        (UNION, 1, [(b"a", b"b", b"c")]),
        (UNION, 3, [(b"a",), (b"b",), (b"c",)]),
    ],
)
def test_what_operators_kept_is_dealt_out_by_its_rule(job, plan_of, rule, after, expected):
    job.start(2)
    kept = [
        {"count": _kept(rule, b"a"), "gone": _kept(OWN, b"x")},
        {"count": _kept(rule, b"b", b"c")},
    ]
    before = _with_kept(job.manifest, "count", kept)
    manifest, _ = adopt(before, plan_of(parallelism=after, max_parallelism=MAX), "/r")
    assert _elements(manifest) == expected
    assert _elements(manifest, "gone") == []


def test_what_operators_kept_is_left_in_place_if_nothing_changes(job, plan_of):
    job.start(2)
    kept = [{"count": _kept(SPLIT, b"a")}, {"count": _kept(SPLIT, b"b", b"c", b"d")}]
    before = _with_kept(job.manifest, "count", kept)
    manifest, changed = adopt(before, plan_of(parallelism=2, max_parallelism=MAX), "/r")
    assert not changed
    assert [subtask.operators for subtask in manifest.vertices["count"].subtasks] == kept
    assert Manifest.from_bytes("here", manifest.to_bytes()) == manifest


@pytest.mark.parametrize("rule", [OWN, SPLIT, UNION, COPY])
def test_nor_is_it_moved_if_only_the_chain_changes(job, plan_of, rule):
    job.start(2)
    kept = [{"count": _kept(rule, b"a")}, {"count": _kept(rule, b"b", b"c", b"d")}]
    longer = plan_of(parallelism=2, max_parallelism=MAX, extra_uid="added")
    manifest, changed = adopt(_with_kept(job.manifest, "count", kept), longer, "/r")
    assert changed
    assert _elements(manifest) == [(b"a",), (b"b", b"c", b"d")]


@pytest.mark.parametrize("rule", [SPLIT, UNION, COPY])
def test_operator_state_that_no_operator_takes_is_refused(job, plan_of, rule):
    job.start(2)
    before = _with_kept(job.manifest, "count", [{}, {"count": _kept(rule, b"a")}])
    renamed = plan_of(parallelism=2, max_parallelism=MAX, uid="renamed")
    with pytest.raises(
        CheckpointMismatchError, match=r"(?s)- count: operator state.*uids they had"
    ):
        adopt(before, renamed, "/r")


def test_sources_of_spark_that_were_dropped_are_not_missed_again(job, plan_of):
    job.start(2)
    job.epoch({1})
    plan = plan_of(parallelism=2, max_parallelism=MAX)
    before = replace(job.manifest, spark_sources=(SparkSourceName("gone", ("0",)),))
    with pytest.raises(CheckpointMismatchError, match="- gone: positions"):
        adopt(before, plan, "/r")
    manifest, _ = adopt(before, plan, "/r", drop_unclaimed=True)
    assert adopt(manifest, plan, "/r") == (manifest, False)
