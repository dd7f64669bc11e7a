"""Generated functions do what the loops would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common._type_unroll import (
    attributes,
    dict_to_values,
    map_values,
    values_to_dict,
)

steps = st.sampled_from([None, str, lambda v: v + 1])
fields = st.dictionaries(st.text(), st.tuples(steps, st.integers()), max_size=300)


def apply(step, value):
    return value if step is None else step(value)


@given(fields)
def test_like_a_loop(given_fields):
    names = list(given_fields)
    functions = [step for step, _ in given_fields.values()]
    values = tuple(value for _, value in given_fields.values())
    expected = [apply(s, v) for s, v in given_fields.values()]
    assert map_values(functions)(values) == expected
    assert values_to_dict(names, functions)(values) == dict(zip(names, expected, strict=True))
    assert dict_to_values(names, functions)(dict(zip(names, values, strict=True))) == expected


def test_missing_key():
    with pytest.raises(KeyError):
        dict_to_values(["a"], [None])({})


def test_attributes():
    assert attributes(["real", "imag"])(1 + 2j) == (1.0, 2.0)
    assert attributes(["real"])(5) == (5,)
    assert attributes([])(5) == ()
    with pytest.raises(ValueError, match="not attribute names"):
        attributes(["a; import os"])
