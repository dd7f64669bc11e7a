from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.entries import (
    RESERVED,
    Entry,
    key_prefix,
    pack_key,
    pack_keys,
    state_id,
    state_prefix,
    unpack_key,
)

groups = st.integers(0, 32767)
ids = st.binary(min_size=8, max_size=8)
parts = st.one_of(st.binary(max_size=20), st.integers(100, 20_000).map(bytes))


@given(groups, ids, parts, parts, parts)
def test_unpacking_gives_back_what_was_packed(group, state, key, namespace, map_key):
    packed = pack_key(group, state, key, namespace, map_key)
    assert unpack_key(packed) == (group, state, key, namespace, map_key)
    assert packed == key_prefix(group, state, key, namespace) + map_key
    assert packed.startswith(state_prefix(group, state))
    assert packed < RESERVED


@given(ids, st.lists(st.tuples(groups, parts, parts, parts)), st.booleans())
def test_many_are_packed_as_each_is(state, rows, plain):
    rows = [(group, key, b"", b"") for group, key, *_ in rows] if plain else rows
    columns = [[row[i] for row in rows] for i in range(4)]
    packed = pack_keys(columns[0], state, *columns[1:])
    assert packed == [pack_key(group, state, *rest) for group, *rest in rows]


@given(groups, ids, parts, parts, parts, parts)
def test_no_key_lies_in_another_ones_prefix(group, state, one, other, namespace, map_key):
    inside = pack_key(group, state, other, namespace, map_key)
    assert inside.startswith(key_prefix(group, state, one, namespace)) == (one == other)


@given(groups, groups, ids, ids, parts, parts)
def test_order_is_by_group_then_state(group, group2, state, state2, key, key2):
    if (group, state) != (group2, state2):
        order = pack_key(group, state, key) < pack_key(group2, state2, key2)
        assert order == ((group, state) < (group2, state2))


@given(groups, ids, parts, st.lists(st.binary(max_size=6)))
def test_a_map_is_in_the_order_of_its_keys(group, state, key, map_keys):
    packed = sorted(pack_key(group, state, key, b"", m) for m in map_keys)
    assert [unpack_key(p).map_key for p in packed] == sorted(map_keys)


def test_state_ids_are_stable_and_tell_names_apart():
    # Stored in every local store: must never change.
    assert state_id("op", "count").hex() == "757f7a0e7dcd8267"
    assert state_id("a", "bc") != state_id("ab", "c")


def test_an_entry_knows_its_packed_key():
    entry = Entry(5, "op", "count", b"k", b"n", b"m", None)
    assert entry.packed() == b"\x00\x05" + state_id("op", "count") + b"\x01k\x01nm"
