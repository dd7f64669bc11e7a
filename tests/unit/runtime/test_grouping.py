"""Rows taken together, compared with plain Python."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime import grouping
from penstock.runtime.grouping import Groups, column_of, is_number, numbers_in

_INTS = st.one_of(st.none(), st.integers(-(2**57), 2**57))
_FLOATS = st.one_of(st.none(), st.sampled_from([0.5, -3.25, 7.0, math.inf, -math.inf, math.nan]))
_ROWS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "ccc"]), st.integers(-2, 2), _INTS, _FLOATS),
    min_size=1,
    max_size=30,
)


def _lowest(values: list[float]) -> float:
    return min(values, key=lambda v: (v != v, v))


def _highest(values: list[float]) -> float:
    return max(values, key=lambda v: (v != v, v))


@pytest.mark.parametrize("dense", [0, 4])
@pytest.mark.parametrize("most_codes", [2, 1 << 40])
@given(rows=_ROWS, offset=st.integers(0, 3), encoded=st.booleans())
def test_groups_against_a_model(
    dense: int, most_codes: int, rows: list[Any], offset: int, encoded: bool
) -> None:
    """Whether groups are numbered by what could be or by what there is; whether a column has a
    dictionary; and for columns that begin in the middle of others."""
    offset = min(offset, len(rows) - 1)
    names, numbers, ints, floats = (
        pa.array(column, kind)
        for column, kind in zip(
            zip(*rows, strict=True),
            (pa.string(), pa.int64(), pa.int64(), pa.float64()),
            strict=True,
        )
    )
    if encoded:
        names = names.dictionary_encode()
    names, numbers, ints, floats = (c.slice(offset) for c in (names, numbers, ints, floats))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_DENSE", dense - 1024 if dense == 0 else dense)
        patch.setattr(grouping, "_MOST_CODES", most_codes)
        groups = Groups([names, numbers])
    first = groups.first_rows()
    found = {}
    whole, real = numbers_in(ints), numbers_in(floats)
    columns = [
        names.take(first), numbers.take(first), groups.sizes(), groups.count(ints),
        *[groups.reduced(way, whole, ints) for way in ("sum", "min", "max")],
        groups.count(floats), *[groups.reduced(way, real, floats) for way in ("min", "max")],
    ]  # fmt: skip
    for name, number, *others in zip(*(c.to_pylist() for c in columns), strict=True):
        assert (name, number) not in found
        found[name, number] = others

    expected: dict[Any, list[Any]] = {}
    for name, number, *values in rows[offset:]:
        expected.setdefault((name, number), []).append(values)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        there = [v for v, _ in values if v is not None]
        reals = [v for _, v in values if v is not None]
        size, count, total, low, high, count_real, low_real, high_real = found[key]
        assert (size, count, count_real) == (len(values), len(there), len(reals))
        assert total == (sum(there) if there else None)
        assert (low, high) == ((min(there), max(there)) if there else (None, None))
        assert repr(low_real) == repr(_lowest(reals) if reals else None)
        assert repr(high_real) == repr(_highest(reals) if reals else None)


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1))
def test_sums_of_floats(sixteenths: list[int]) -> None:
    """Exact where floats are."""
    values = [n / 16 for n in sixteenths]
    column = pa.array(values, pa.float32()) if max(map(abs, values)) < 2**10 else pa.array(values)
    found = Groups([pa.array([7] * len(values))]).reduced("sum", numbers_in(column), column)
    assert found.to_pylist() == [sum(values)]


def test_which_columns_have_numbers() -> None:
    assert all(map(is_number, [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]))
    assert not any(map(is_number, [pa.uint64(), pa.string(), pa.date32(), pa.bool_()]))
    assert column_of(numbers_in(pa.array([1, 2], pa.int16()))).type == pa.int64()


def test_pandas_is_not_imported() -> None:
    """It takes half a second, in every worker."""
    program = (
        "import sys, pyarrow as pa\n"
        "from penstock.runtime.grouping import Groups, numbers_in\n"
        "from penstock.runtime.grouping import column_of\n"
        "import numpy as np\n"
        "names = pa.DictionaryArray.from_arrays(\n"
        "    column_of(np.array([0, 1, 0])), column_of(np.array([5, 6])))\n"
        "x = column_of(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))\n"
        "groups = Groups([names, column_of(np.array([1, 1, 1]))])\n"
        "names.take(groups.first_rows()), groups.reduced('sum', numbers_in(x), x)\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
