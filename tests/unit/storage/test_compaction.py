from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.checkpoint_layout import merged_name
from penstock.storage.compaction import (
    CompactionPolicy,
    plan_compaction,
    urgency,
)
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.runs import sorted_runs


def info(kind: FileKind, size: int) -> FileInfo:
    return FileInfo("f", 1, size, "", kind, (("op", "s"),), (0, 1))


POLICY = CompactionPolicy(max_segments=4, small_bytes=100)


@pytest.mark.parametrize(
    ("images", "segments", "expected"),
    [
        ([], [], None),
        ([], [99], None),
        ([], [50, 50], ("image", 2)),
        ([1000], [999], None),
        ([500, 500], [600, 400], ("image", 4)),
        ([1000], [10] * 4, None),
        ([1000], [10] * 5, ("segment", 5)),
        ([20], [5] * 5, ("image", 6)),
    ],
)
def test_plan(images, segments, expected):
    files = [info("image", n) for n in images] + [info("segment", n) for n in segments]
    plan = plan_compaction(files, POLICY)
    assert (plan and (plan.result, len(plan.inputs))) == expected


def test_the_parts_of_a_large_merged_segment_are_not_merged_again():
    name = merged_name(9, "v", 0, "t")
    parts = [replace(info("segment", 10), path=f"state/{name}-{n:05d}.parquet") for n in range(10)]
    files = [info("image", 1000), *parts]
    assert plan_compaction(files, POLICY) is None
    assert urgency(files, POLICY) == 0.25
    assert plan_compaction([*files, *[info("segment", 10)] * 4], POLICY) is not None


@pytest.mark.parametrize(
    ("images", "segments", "expected"),
    [
        ([], [], 0),
        ([], [5] * 4, 1),
        ([], [5] * 10, 2.5),
        ([], [300], 3),
        ([1000], [5] * 6, 1.5),
        ([1000], [2000], 2),
    ],
)
def test_urgency_is_by_number_or_weight(images, segments, expected):
    files = [info("image", n) for n in images] + [info("segment", n) for n in segments]
    assert urgency(files, POLICY) == expected


@given(st.lists(st.integers(1, 200), max_size=120))
def test_rewriting_is_paid_for_by_writing(segments):
    """Bytes rewritten stay within a few times the bytes written, whatever comes."""
    files: list[FileInfo] = []
    rewritten = 0
    for size in segments:
        files.append(info("segment", size))
        while plan := plan_compaction(files, CompactionPolicy(max_segments=8, small_bytes=1)):
            total = sum(i.bytes for i in plan.inputs)
            rewritten += total
            kept = [i for i in files if i not in plan.inputs]
            files = [*kept, info(plan.result, total)]
            if plan.result == "segment":
                break
    assert rewritten <= 40 * sum(segments)


@pytest.mark.parametrize(
    ("names", "lengths"),
    [
        (["1_v_0_t.image-00000", "1_v_0_t.image-00001", "2_v_0_t.segment"], [2, 1]),
        (["1_v_0_t.merged-00000", "1_v_0_t.merged-00002"], [2]),
        (["1_v_0_t.segment", "1_v_0_t.segment-1", "1_v_0_t.segment-2"], [1, 1, 1]),
        (["1_v_0_t.image-00000", "1_v_1_t.image-00001"], [1, 1]),
        (["1_v_0_t.image-00000", "1_v_0_t.merged-00001"], [1, 1]),
        (["1_v_0_t.image-00000", "1_v_0_t.image-00000"], [1, 1]),
        (["other-0", "other-1"], [1, 1]),
    ],
)
def test_only_parts_of_one_result_are_read_one_after_the_other(names, lengths):
    infos = [replace(info("segment", 1), path=f"state/{name}.parquet") for name in names]
    runs = sorted_runs(infos)
    assert [len(run) for run in runs] == lengths
    assert [i for run in runs for i in run] == infos
