"""Lines out of bytes: whatever the cuts, every line comes once, and its text is right."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.connectors import _text_lines
from penstock.datastream.connectors._text_lines import (
    LineStream,
    decoded,
    first_line_from,
    is_cut_by_bytes,
)

# Short lines, every kind of end, and now and then a line that is longer than a block.
texts = st.lists(
    st.one_of(st.sampled_from(["\n", "\r", "\r\n", "", "a", "é", "日本"]), st.just("x" * 9))
).map("".join)


def model(text: str) -> list[str]:
    """What Python's own universal newlines make of it."""
    with io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=None) as file:
        return [line.removesuffix("\n") for line in file]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_text_lines, "BLOCK", 4)
        yield


def lines_in(data: bytes, start: int, end: int | None, most: int) -> list[str]:
    """The lines of a range, in calls that each begin anew at the position of the last."""
    position = first_line_from(io.BytesIO(data), start, end) if end is not None else 0
    found: list[str] = []
    finished = False
    while not finished:
        stream = io.BytesIO(data)
        stream.seek(position)
        lines = LineStream(stream, position, end)
        taken = lines.take(most)
        assert len(taken) <= most
        assert taken or lines.finished
        found += decoded(taken, "utf-8") if taken else []
        position, finished = lines.position, lines.finished
    return found


@given(texts, st.lists(st.integers(0, 60)), st.integers(1, 4))
def test_ranges_have_every_line_once(text: str, cuts: list[int], most: int) -> None:
    data = text.encode()
    bounds = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(data)), len(data)]
    parts = [lines_in(data, a, b, most) for a, b in pairwise(bounds)]
    assert [line for part in parts for line in part] == model(text)


@given(texts, st.integers(1, 9))
def test_one_stream_read_on(text: str, most: int) -> None:
    lines = LineStream(io.BytesIO(text.encode()), 0, None)
    found: list[str] = []
    while taken := lines.take(most):
        found += decoded(taken, "utf-8")
    assert lines.finished
    assert lines.position == len(text.encode())
    assert found == model(text)


def test_a_range_within_a_line_has_none() -> None:
    data = b"one\n" + b"x" * 50 + b"\ntwo\n"
    assert lines_in(data, 5, 20, 10) == []
    assert lines_in(data, 20, len(data), 10) == ["two"]


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "cp1252", "gbk", "shift_jis", "utf-8-sig"])
def test_cut_by_bytes(charset: str) -> None:
    assert is_cut_by_bytes(charset)


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32-be", "cp037"])
def test_not_cut_by_bytes(charset: str) -> None:
    assert not is_cut_by_bytes(charset)
