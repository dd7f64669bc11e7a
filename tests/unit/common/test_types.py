"""Row and RowKind."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.types import Row, RowKind


def test_positional():
    row = Row(1, "a")
    assert (row[0], row[1], row[-1], row[0:2]) == (1, "a", "a", [1, "a"])
    assert len(row) == 2
    assert list(row) == [1, "a"]
    assert "a" in row
    assert repr(row) == "<Row(1, 'a')>"


def test_named():
    row = Row(name="Ann", age=7)
    assert (row.name, row["age"], row[0]) == ("Ann", 7, "Ann")
    assert row.as_dict() == {"name": "Ann", "age": 7}
    assert row.get_fields_by_names(["age", "name"]) == [7, "Ann"]
    assert repr(row) == "Row(name='Ann', age=7)"


def test_template():
    person = Row("name", "age")
    assert person("Ann", 7) == Row(name="Ann", age=7)
    assert person("Ann").name == "Ann"
    assert repr(person("Ann")) == "Row(name='Ann')"
    with pytest.raises(ValueError, match="names 2 fields, got 3 values"):
        person(1, 2, 3)


def test_set():
    row = Row(name="Ann", age=7)
    row.age = 8
    row["name"] = "Bob"
    assert row == Row(name="Bob", age=8)
    row[1] = 9
    assert row.age == 9


def test_field_names_can_be_given_later():
    row = Row(1, "hi")
    row.set_field_names(["f0", "f1"])
    assert repr(row) == "Row(f0=1, f1='hi')"
    assert row.get_field_names() == ["f0", "f1"]


def test_unknown_fields():
    row = Row(name="Ann")
    with pytest.raises(AttributeError, match="no field 'nam'"):
        row.nam
    with pytest.raises(AttributeError, match="no field 'nam'"):
        row.nam = 1
    with pytest.raises(KeyError):
        row["nam"]
    with pytest.raises(KeyError):
        row["nam"] = 1
    with pytest.raises(AttributeError):
        Row(1).name
    with pytest.raises(ValueError, match=r"no fields \['x'\]"):
        row.get_fields_by_names(["x"])
    with pytest.raises(TypeError, match="no field names"):
        Row(1).as_dict()
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)


def test_equality_sees_values_names_and_kind():
    assert Row(1, 2) == Row(1, 2)
    assert Row(1, 2) != Row(2, 1)
    assert Row(1) != Row(a=1)
    assert Row(a=1) != Row(b=1)
    assert Row(1) != (1,)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)


def test_hash_by_value():
    assert {Row(1, "a"): "x"}[Row(1, "a")] == "x"
    with pytest.raises(TypeError):
        hash(Row([1]))


def test_kind():
    row = Row.of_kind(RowKind.UPDATE_AFTER, a=1)
    assert row.get_row_kind() is RowKind.UPDATE_AFTER
    row.set_row_kind(RowKind.DELETE)
    assert row.get_row_kind() is RowKind.DELETE
    assert Row(1).get_row_kind() is RowKind.INSERT


def test_recursive_dict():
    row = Row(a=Row(b=1), c=[Row(d=2)], e={"f": Row(g=3)}, h=Row(1))
    assert row.as_dict(True) == {
        "a": {"b": 1},
        "c": [{"d": 2}],
        "e": {"f": {"g": 3}},
        "h": Row(1),
    }
    assert row.as_dict()["a"] == Row(b=1)


rows = st.one_of(
    st.lists(st.integers()).map(lambda v: Row(*v)),
    st.dictionaries(st.text(min_size=1), st.text(), min_size=1).map(lambda d: Row(**d)),
    st.builds(Row.of_kind, st.sampled_from(RowKind), st.integers()),
)


@given(rows)
def test_pickle_round_trip(row):
    back = pickle.loads(pickle.dumps(row, protocol=5))
    assert back == row
    assert repr(back) == repr(row)


@given(rows)
def test_copies_are_independent(row):
    for clone in (copy.copy(row), copy.deepcopy(row)):
        assert clone == row
        clone._values.append(1)
        assert clone != row


def test_pickle_is_compact():
    assert len(pickle.dumps(Row(1, 2), protocol=5)) < 70
