from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.storage import crash_points
from penstock.storage.checkpoint_layout import image_name, merged_name, segment_path
from penstock.storage.compaction import (
    Compaction,
    CompactionPolicy,
    plan_compaction,
    run_compaction,
    sorted_runs,
    urgency,
)
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.table_file import read_table_file, write_table_file

fs = LocalFileSystem()
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def info(kind: FileKind, size: int) -> FileInfo:
    return FileInfo("f", 1, size, "", kind, (("op", "s"),), (0, 1))


def entry(number: int, value: bytes | None, group: int = 0) -> Entry:
    return Entry(group, "op", "s", b"%d" % number, b"", b"", value)


def read_all(root, infos) -> list[Entry]:
    return [e for i in infos for batch in read_table_file(fs, str(root), i) for e in batch]


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


versions = st.lists(
    st.dictionaries(st.integers(0, 12), st.none() | st.binary(max_size=3), min_size=1),
    min_size=1,
    max_size=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(versions, st.booleans(), st.booleans(), st.sampled_from([1, 30, 1 << 20]))
def test_newest_wins(tmp_path, changes, spilled, full, part_bytes):
    """Whether the changes are of several epochs, or parts of one that outgrew memory."""
    infos, model = [], {}
    for number, change in enumerate(changes):
        rows = [entry(k, v, group=k % 3) for k, v in change.items()]
        epoch, part = (0, number) if spilled else (number, 0)
        path = segment_path(epoch, "v", 0, "t", part)
        infos.append(write_table_file(fs, str(tmp_path), path, rows))
        model.update(change)
    result = "image" if full else "segment"
    name = (image_name if full else merged_name)(9, "v", 0, "t")
    out = run_compaction(
        fs, str(tmp_path), Compaction(result, tuple(infos), part_bytes=part_bytes), "state", name
    )
    expected = [entry(k, v, k % 3) for k, v in model.items() if v is not None or not full]
    assert read_all(tmp_path, out) == sorted(expected, key=Entry.packed)
    assert {i.kind for i in out} <= {result}
    # An image of the image and later changes.
    later = write_table_file(
        fs, str(tmp_path), segment_path(10, "v", 0, "t"), [entry(5, b"new", 2), entry(6, None)]
    )
    again = run_compaction(
        fs,
        str(tmp_path),
        Compaction("image", (*out, later), (0, 1)),
        "state",
        image_name(10, "v", 0, "t"),
    )
    model.update({5: b"new", 6: None})
    expected = [entry(k, v, k % 3) for k, v in model.items() if v is not None and k % 3 < 2]
    assert read_all(tmp_path, again) == sorted(expected, key=Entry.packed)


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


def run_process(root, compaction: Compaction, **env: str) -> subprocess.CompletedProcess[str]:
    job = {
        "root": str(root),
        "compaction": compaction.to_json(),
        "out_dir": "state",
        "name": "img",
    }
    return subprocess.run(
        [sys.executable, "-m", "penstock.storage.compaction"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**ENV, **env},
        check=False,
    )


def test_as_a_process_that_dies_and_is_started_again(tmp_path):
    rows = [entry(n, b"v" * 50) for n in range(100)]
    segment = write_table_file(fs, str(tmp_path), "state/seg", rows)
    compaction = Compaction("image", (segment,), part_bytes=1000)
    crash = {crash_points.AT: "image.middle:2", crash_points.ONCE: str(tmp_path / "died")}
    died = run_process(tmp_path, compaction, **crash)
    assert (died.returncode, died.stdout) == (37, "")
    assert fs.list(str(tmp_path / "state")) == ["img-00000.parquet", "seg"]
    done = run_process(tmp_path, compaction, **crash)
    assert done.returncode == 0, done.stderr
    infos = [FileInfo.from_json(i) for i in json.loads(done.stdout)["files"]]
    assert len(infos) > 3
    assert read_all(tmp_path, infos) == sorted(rows, key=Entry.packed)


def test_the_process_reports_a_damaged_input(tmp_path):
    segment = write_table_file(fs, str(tmp_path), "seg", [entry(1, b"v")])
    fs.write(str(tmp_path / "seg"), b"garbage")
    failed = run_process(tmp_path, Compaction("image", (segment,), (0, 5)))
    assert failed.returncode == 1
    answer = json.loads(failed.stdout)
    assert answer["error"] == "CheckpointCorruptError"
    assert "seg is damaged" in answer["message"]
