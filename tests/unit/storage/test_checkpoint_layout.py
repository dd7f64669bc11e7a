from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidArgumentError
from penstock.storage.checkpoint_layout import (
    CheckpointLayout,
    StateFileName,
    image_name,
    merged_name,
    parse_epoch,
    parse_state_file,
    segment_path,
)

names = st.from_regex(r"[A-Za-z0-9_.-]+", fullmatch=True).filter(lambda n: n not in (".", ".."))
tokens = st.from_regex(r"[A-Za-z0-9]+", fullmatch=True)
numbers = st.integers(0, 10**9)


def test_paths():
    layout = CheckpointLayout.of_job("/data", "job-1")
    assert layout.root == "/data/job-1"
    assert layout.spark == "/data/job-1/spark"
    assert layout.spark_offsets(3) == "/data/job-1/spark/offsets/3"
    assert layout.manifest(12) == "/data/job-1/epochs/12.json"
    assert layout.plans == "/data/job-1/plans"
    assert layout.source("kafka_in") == "/data/job-1/sources/kafka_in"
    assert layout.full(segment_path(12, "v", 0, "ab")) == (
        "/data/job-1/state/0000000012_v_00000_ab.segment.parquet"
    )


@given(numbers, names, numbers, tokens, numbers)
def test_names_can_be_parsed(epoch, vertex, subtask, token, part):
    segment = segment_path(epoch, vertex, subtask, token)
    assert parse_state_file(segment) == StateFileName(
        epoch, vertex, subtask, token, "segment", None
    )
    for make, kind in ((image_name, "image"), (merged_name, "merged")):
        name = f"{make(epoch, vertex, subtask, token)}-{part:05d}.parquet"
        assert parse_state_file(name) == StateFileName(epoch, vertex, subtask, token, kind, part)


@given(st.lists(numbers))
def test_names_are_in_the_order_of_epochs(epochs):
    assert sorted(segment_path(e, "v", 0, "t") for e in epochs) == [
        segment_path(e, "v", 0, "t") for e in sorted(epochs)
    ]


@given(numbers)
def test_epochs_of_manifests(epoch):
    assert parse_epoch(CheckpointLayout("/x").manifest(epoch)) == epoch


@pytest.mark.parametrize(
    "name", ["", "x.json", "01.json", "1.json.claim", ".1.json.ab12.tmp", "-1.json", "1.parquet"]
)
def test_leftovers_are_not_epochs(name):
    assert parse_epoch(name) is None


@pytest.mark.parametrize("bad", ["", "..", "a/b", "ä", "a b"])
def test_unsafe_names_are_refused(bad):
    with pytest.raises(InvalidArgumentError):
        CheckpointLayout.of_job("/data", bad)
    with pytest.raises(InvalidArgumentError):
        segment_path(1, bad, 0, "t")


def test_a_token_has_no_separator():
    with pytest.raises(InvalidArgumentError):
        segment_path(1, "v", 0, "a_b")
