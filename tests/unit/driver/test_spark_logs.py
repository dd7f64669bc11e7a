"""Spark's offsets and file-source logs, as we read and write them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.driver.spark_logs import (
    is_log,
    last_log,
    log_entries,
    log_files,
    metadata_of,
    missing_log,
    offset_file,
    offsets_by_name,
    uri_of,
)


def test_offsets_with_names_and_without():
    assert offsets_by_name('v2\na:{"logOffset":1}\nb:7') == {"a": '{"logOffset":1}', "b": "7"}
    assert offsets_by_name("v1\n7\n-\n9") == {"0": "7", "2": "9"}


def test_the_file_of_a_batch():
    metadata = {"batchTimestampMs": 5, "conf": {"x": "y"}, "sourceMetadataInfo": {}}
    text = offset_file(metadata, {"a": "1", "b": "2"}, ["b", "c", "a"], named=True)
    assert text.splitlines()[0] == "v2"
    assert text.splitlines()[2:] == ["b:2", "a:1"]
    text = offset_file(metadata, {"0": "1"}, ["0", "1"], named=False)
    assert [text.splitlines()[0], *text.splitlines()[2:]] == ["v1", "1", "-"]
    assert "sourceMetadataInfo" not in metadata_of(text)
    conf = metadata_of(text)["conf"]
    assert conf["x"] == "y"
    assert conf["spark.sql.streaming.queryEvolution.enableSourceEvolution"] == "false"


@pytest.mark.parametrize(("offset", "last"), [('{"logOffset":12}', 12), ('{"t":{"0":3}}', None),
                                              ("17", None), ("x", None)])  # fmt: skip
def test_how_far_a_log_counts(offset, last):
    assert last_log(offset) == last


@given(st.integers(0, 45), st.integers(0, 60))
def test_a_log_is_cut_and_written_anew(last, written):
    """Whatever batches were compacted, the entries up to the offset come back, and no others."""
    entries = [
        {"path": f"file:///in/{batch}-{i}", "timestamp": 1, "batchId": batch}
        for batch in range(max(last, written) + 1)
        for i in range(batch % 3 + 1)
    ]
    stored = log_files(entries, max(last, written))
    assert all(is_log(name) for name in stored)
    kept = log_entries(stored.values(), last)
    assert kept == [entry for entry in entries if entry["batchId"] <= last]
    cut = log_files(kept, last)
    numbers = sorted(int(name.split(".")[0]) for name in cut)
    assert numbers == list(range(numbers[0], last + 1))  # Spark wants every one of them
    first = f"{numbers[0]}.compact" if last >= 9 else "0"
    assert first in cut
    assert all(json.loads(line) for text in cut.values() for line in text.splitlines()[1:])


def test_paths_as_spark_writes_them():
    assert uri_of("/a b/c%41/(d)+é~,'&=@!#?[") == "file:///a%20b/c%2541/(d)+é~,'&=@!%23%3F%5B"


def test_a_log_with_a_gap_is_noticed():
    whole = ["0", "1", "2"]
    assert missing_log(whole, 2) is None
    assert missing_log(whole, 3) == "3"
    assert missing_log(["0", "2"], 2) == "1"
    assert missing_log([], -1) is None
    assert missing_log([], 0) == "0"
    assert missing_log(["9.compact", "10", "11"], 11) is None
    assert missing_log(["9.compact", "11"], 11) == "10"
    assert missing_log(["19.compact"], 12) is None  # it holds all before it
