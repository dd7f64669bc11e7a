"""Manifests: what is written is what is read, and damage is told from a newer format."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CheckpointCorruptError, CheckpointFormatError
from penstock.storage.contents import Content
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import (
    FORMAT_VERSION,
    ChainLink,
    Manifest,
    Origin,
    SourceState,
    SparkSourceName,
    SubtaskState,
    VertexState,
)

names = st.text(max_size=8)
plain_names = st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True)
numbers = st.integers(0, 2**40)
files = st.builds(
    FileInfo,
    path=st.lists(plain_names, min_size=1, max_size=3).map("/".join),
    rows=numbers,
    bytes=numbers,
    checksum=names,
    kind=st.sampled_from(["segment", "image"]),
    states=st.lists(st.tuples(names, names), max_size=2).map(tuple),
    key_groups=st.tuples(st.integers(0, 99), st.integers(100, 127)),
)
links = st.builds(
    ChainLink, names, st.lists(files, max_size=2).map(tuple), st.lists(names, max_size=2).map(tuple)
)
subtasks = st.builds(SubtaskState, names, st.lists(links, max_size=3).map(tuple))
vertices = st.builds(
    VertexState,
    st.lists(names, max_size=2).map(tuple),
    numbers,
    numbers,
    st.lists(subtasks, max_size=3).map(tuple),
)
manifests = st.builds(
    Manifest,
    job_id=names,
    job_name=names,
    epoch=numbers,
    base=st.none() | numbers,
    batch=st.none() | numbers,
    offsets=st.none() | names,
    created=numbers,
    vertices=st.dictionaries(plain_names, vertices, max_size=2),
    sources=st.dictionaries(
        names,
        st.builds(SourceState, st.dictionaries(names, st.tuples(names, st.booleans()), max_size=2)),
        max_size=2,
    ),
    rows_read=st.dictionaries(names, numbers, max_size=2),
    state_types=st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=2),
    committables=st.dictionaries(names, st.just([{"a": 1, "b": None}]), max_size=1),
    final=st.booleans(),
    savepoint=st.booleans(),
    contents=st.dictionaries(plain_names, st.builds(Content, numbers, names), max_size=2),
)


def segment(path: str) -> FileInfo:
    return FileInfo(path, 1, 10, "00", "segment", (("op", "s"),), (0, 127))


def manifest(epoch: int = 1, chain: tuple[ChainLink, ...] = ()) -> Manifest:
    vertex = VertexState(("op",), 1, 128, (SubtaskState("aa", chain),))
    return Manifest("job", "Job", epoch, None, None, None, 0, {"v": vertex})


@given(manifests)
def test_round_trip(made):
    assert Manifest.from_bytes("path", made.to_bytes()) == made


def test_equal_manifests_have_equal_bytes():
    one = replace(manifest(), rows_read={"a": 1, "b": 2})
    other = replace(manifest(), rows_read={"b": 2, "a": 1})
    assert one.to_bytes() == other.to_bytes()


def test_files_are_those_of_all_chains():
    chain = (
        ChainLink("1-aa", (segment("a"), segment("b"))),
        ChainLink("2-bb", (segment("c"),), ("1-aa",)),
    )
    assert [file.path for file in manifest(chain=chain).files()] == ["a", "b", "c"]


def test_a_segment_makes_a_new_version():
    before = SubtaskState("aa", (ChainLink("1-aa", (segment("a"),)),))
    after = before.with_segment("bb", 2, (segment("b"),))
    assert after.version == "2-bb"
    assert after.chain == (*before.chain, ChainLink("2-bb", (segment("b"),)))


def test_an_epoch_without_changes_keeps_the_version_of_the_state():
    before = SubtaskState("aa", (ChainLink("1-aa", (segment("a"),)),))
    after = before.with_segment("bb", 2, ())
    assert (after.token, after.version, after.chain) == ("bb", "1-aa", before.chain)
    assert SubtaskState("aa").with_segment("bb", 2, ()).version is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"7",
        b"{}",
        b'{"format": 3}',
        b'{"format": 3, "vertices": [], "sources": {}}',
        b'{"format": 3, "vertices": {"v": 3}, "sources": {}}',
    ],
)
def test_damage_is_reported_with_the_path(data):
    with pytest.raises(CheckpointCorruptError, match=r"path/7\.json is damaged"):
        Manifest.from_bytes("path/7.json", data)


@given(st.data())
def test_a_truncated_manifest_is_damaged(data):
    whole = manifest(chain=(ChainLink("1-aa", (segment("a"),)),)).to_bytes()
    with pytest.raises(CheckpointCorruptError):
        Manifest.from_bytes("path", whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize("name", ["job_id", "epoch", "vertices", "sources"])
def test_a_missing_part_is_damage(name):
    raw = json.loads(manifest().to_bytes())
    del raw[name]
    with pytest.raises(CheckpointCorruptError, match=name):
        Manifest.from_bytes("path", json.dumps(raw).encode())


def test_a_newer_format_is_refused_even_if_nothing_else_is_known():
    data = json.dumps({"format": FORMAT_VERSION + 1, "everything": "new"}).encode()
    with pytest.raises(CheckpointFormatError, match="reads up to 3; upgrade Penstock"):
        Manifest.from_bytes("path", data)


def test_an_older_format_is_refused():
    data = json.dumps({"format": FORMAT_VERSION - 1, "everything": "old"}).encode()
    with pytest.raises(CheckpointFormatError, match="go on with that Penstock"):
        Manifest.from_bytes("path", data)


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "state/../../x", "state//x", ""]
)
def test_a_path_out_of_the_directory_is_refused(path):
    chain = (ChainLink("1-aa", (segment(path),)),)
    sealed = replace(manifest(), savepoint=True, contents={path: Content(1, "00")})
    for made in (manifest(chain=chain), sealed):
        with pytest.raises(
            CheckpointCorruptError, match=r"m\.json is damaged: it names .*path out of"
        ):
            Manifest.from_bytes("m.json", made.to_bytes())


def test_a_name_that_is_a_path_is_refused():
    vertex = manifest().vertices["v"]
    for made in (
        replace(manifest(), vertices={"../v": vertex}),
        replace(manifest(), spark_sources=(SparkSourceName("a", ("../../a",)),)),
        replace(manifest(), origin=Origin("00", "/savepoint", "x/../..")),
    ):
        with pytest.raises(CheckpointCorruptError, match="path out of its directory"):
            Manifest.from_bytes("m.json", made.to_bytes())


@given(st.data())
def test_any_changed_byte_of_a_savepoint_s_manifest_is_noticed(data):
    whole = replace(manifest(), savepoint=True, rows_read={"a": 17}).to_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises((CheckpointCorruptError, CheckpointFormatError)):
        Manifest.from_bytes("m.json", bytes(changed))
