"""A savepoint in the making, without Spark: what becomes of operators, states and sources."""

from __future__ import annotations

import base64
import pickle
from dataclasses import replace

import pytest

from penstock.errors import InvalidArgumentError
from penstock.state.redistribution import SPLIT, StoredState, as_text, kept_by, packed
from penstock.state_processor.draft import Draft
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import (
    ChainLink,
    LoopState,
    Manifest,
    SourceState,
    SubtaskState,
    VertexState,
)

TYPE = {"kind": "value", "type": {"kind": "long"}}
LISTS = {"kind": "operator list", "type": {"kind": "list", "element": {"kind": "long"}}}


def _manifest() -> Manifest:
    file = FileInfo("state/x", 1, 1, "", "image", (("a", "n"), ("a", "m")), (0, 127))
    kept = packed(
        {"l": StoredState(SPLIT, LISTS, (b"\x01",)), "k": StoredState(SPLIT, LISTS, (b"\x02",))}
    )
    assert kept is not None
    with_state = SubtaskState("", (ChainLink("v", (file,)),), 7, {"a": as_text(kept)})
    return Manifest(
        job_id="job",
        job_name="job",
        epoch=3,
        base=2,
        batch=None,
        offsets=None,
        created=0,
        vertices={
            "a": VertexState(("a", "sink"), 1, 128, (with_state,)),
            "s": VertexState(("s",), 1, 128, (SubtaskState(""),)),
        },
        sources={"s": SourceState({"0": ("", False)})},
        state_types={"a": {"n": TYPE, "m": TYPE, "l (operator list)": LISTS}},
        loops={"sink": LoopState(1, ())},
    )


def test_a_draft_begins_as_the_snapshot() -> None:
    draft = Draft.of(_manifest())
    assert draft.origins == {("a", "n"): ("a", "n"), ("a", "m"): ("a", "m")}
    assert draft.rewritten == set()
    assert draft.manifest.savepoint
    ended = Draft.of(replace(_manifest(), final=True))
    assert (draft.manifest.vertices["a"].subtasks[0].watermark, draft.manifest.final) == (7, False)
    assert ended.manifest.vertices["a"].subtasks[0].watermark is None


def test_an_operator_is_renamed() -> None:
    draft = Draft.of(_manifest())
    draft.rename_operator("a", "the new one")
    vertex = draft.vertex_of("the new one")
    assert vertex is not None
    assert draft.manifest.vertices[vertex].operators == ("the new one", "sink")
    assert draft.state_names(vertex)["a", "n"] == ("the new one", "n")
    assert draft.rewritten == {vertex}
    assert draft.vertices[vertex] == "a"
    assert set(draft.manifest.state_types) == {"the new one"}
    assert set(kept_by(draft.manifest.vertices[vertex].subtasks[0], "the new one")) == {"l", "k"}
    with pytest.raises(InvalidArgumentError, match="already"):
        draft.rename_operator("s", "the new one")
    with pytest.raises(InvalidArgumentError, match="head of a loop"):
        draft.rename_operator("sink", "other")


def test_states_are_removed() -> None:
    draft = Draft.of(_manifest())
    draft.remove_state("a", "l")
    assert draft.rewritten == set()
    draft.remove_state("a", "n")
    assert draft.rewritten == {"a"}
    assert draft.state_names("a") == {("a", "m"): ("a", "m")}
    assert set(kept_by(draft.manifest.vertices["a"].subtasks[0], "a")) == {"k"}
    assert set(draft.manifest.state_types["a"]) == {"m"}
    with pytest.raises(InvalidArgumentError, match="no state 'n'"):
        draft.remove_state("a", "n")
    with pytest.raises(InvalidArgumentError, match="did you mean 'sink'"):
        draft.remove_state("sinks", "n")


def test_an_operator_is_removed() -> None:
    draft = Draft.of(_manifest())
    draft.remove_operator("a")
    draft.remove_operator("s")
    assert set(draft.manifest.vertices) == {"a"}
    assert draft.manifest.vertices["a"].operators == ("sink",)
    assert draft.manifest.vertices["a"].subtasks[0].operators == {}
    assert draft.state_names("a") == {}
    assert (draft.manifest.sources, draft.manifest.state_types) == ({}, {})
    assert draft.removed_sources == {"a", "s"}


def test_sources() -> None:
    draft = Draft.of(_manifest())
    draft.set_position("s", "0", {"at": 5}, True)
    text, finished = draft.manifest.sources["s"].positions["0"]
    assert (pickle.loads(base64.b64decode(text)), finished) == ({"at": 5}, True)
    with pytest.raises(InvalidArgumentError, match="no split '1'; it has 0"):
        draft.set_position("s", "1", None, False)
    draft.reset_source("s")
    assert draft.manifest.sources == {}
    assert draft.removed_sources == {"s"}
    with pytest.raises(InvalidArgumentError, match="no source with positions; there are none"):
        draft.reset_source("s")


@pytest.mark.parametrize(("parallelism", "most"), [(0, 128), (5, 4), (1, 0), (1, 40_000)])
def test_a_parallelism_that_cannot_be(parallelism: int, most: int) -> None:
    with pytest.raises(InvalidArgumentError, match="parallelism"):
        Draft.empty(parallelism, most)
