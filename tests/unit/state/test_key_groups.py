"""Key-group arithmetic: what rescaling rests on."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.state.key_groups import (
    UPPER_BOUND,
    default_max_parallelism,
    key_group_of,
    key_group_range,
    subtask_of,
)
from penstock.state.keys import encode_key

# (max parallelism, parallelism)
sizes = st.integers(1, UPPER_BOUND).flatmap(
    lambda most: st.tuples(st.just(most), st.integers(1, min(most, 300)))
)


@given(sizes)
def test_ranges_are_contiguous_and_cover_all(size):
    most, parallelism = size
    ranges = [key_group_range(subtask, most, parallelism) for subtask in range(parallelism)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == most - 1
    assert all(start <= end for start, end in ranges)
    assert all(one[1] + 1 == other[0] for one, other in itertools.pairwise(ranges))


@given(sizes)
def test_ranges_differ_by_one_at_most(size):
    most, parallelism = size
    ranges = [key_group_range(subtask, most, parallelism) for subtask in range(parallelism)]
    lengths = {end - start + 1 for start, end in ranges}
    assert max(lengths) - min(lengths) <= 1


@given(sizes, st.data())
def test_a_key_group_belongs_to_the_subtask_in_whose_range_it_is(size, data):
    most, parallelism = size
    group = data.draw(st.integers(0, most - 1))
    start, end = key_group_range(subtask_of(group, most, parallelism), most, parallelism)
    assert start <= group <= end


@given(st.binary(), st.integers(1, UPPER_BOUND))
def test_every_key_has_a_group(key, most):
    assert 0 <= key_group_of(key, most) < most


@given(st.integers(1, 2 * UPPER_BOUND))
def test_default_max_parallelism(parallelism):
    found = default_max_parallelism(parallelism)
    assert 128 <= found <= 32768
    assert found & (found - 1) == 0
    wanted = parallelism + parallelism // 2
    assert found >= min(wanted, 32768)
    assert found == 128 or found // 2 < wanted


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (85, 128), (86, 256), (170, 256), (171, 256), (172, 512), (20_000, 32768)],
)
def test_default_max_parallelism_as_in_flink(parallelism, expected):
    assert default_max_parallelism(parallelism) == expected


@pytest.mark.parametrize(
    ("key", "group"),
    [
        (None, 10),
        (0, 28),
        (1, 62),
        ("a", 93),
        ("sensor-17", 85),
        (("a", 1), 32),
        (b"", 63),
        (1.5, 20),
    ],
)
def test_groups_never_change(key, group):
    """State of older checkpoints is found by them."""
    assert key_group_of(encode_key(key), 128) == group


def test_groups_are_spread_evenly():
    groups = [key_group_of(encode_key(number), 128) for number in range(128 * 100)]
    counts = [groups.count(group) for group in range(128)]
    assert min(counts) > 50
    assert max(counts) < 150
