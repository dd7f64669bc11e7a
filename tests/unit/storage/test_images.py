from __future__ import annotations

import json
import os
import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.storage import crash_points
from penstock.storage.checkpoint_layout import image_name, merged_name, segment_path
from penstock.storage.compaction import Compaction
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.images import run_compaction
from penstock.storage.table_file import read_table_file, write_table_file

fs = LocalFileSystem()
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def entry(number: int, value: bytes | None, group: int = 0) -> Entry:
    return Entry(group, "op", "s", b"%d" % number, b"", b"", value)


def read_all(root, infos) -> list[Entry]:
    return [e for i in infos for batch in read_table_file(fs, str(root), i) for e in batch]


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


def run_process(root, compaction: Compaction, **env: str) -> subprocess.CompletedProcess[str]:
    job = {
        "root": str(root),
        "compaction": compaction.to_json(),
        "out_dir": "state",
        "name": "img",
    }
    return subprocess.run(
        [sys.executable, "-m", "penstock.storage.images"],
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
