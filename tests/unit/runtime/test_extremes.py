"""Values of some rows of whole batches, compared with records added one by one."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import aggregates as agg
from penstock.runtime.partials import NUMBER_OF_RECORDS, Combined, Partial, partials_of

_TYPES = {
    "tinyint": (pa.int8(), st.integers(-3, 3)),
    "bigint": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 2**63 - 1])),
    "float": (pa.float32(), st.sampled_from([0.5, -0.25, math.inf, math.nan])),
    "double": (pa.float64(), st.sampled_from([0.5, -3.25, -math.inf, math.nan])),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "ç", "\U0001f600"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"a", b"\xff"])),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.sampled_from([dt.date(1, 1, 1), dt.date(1969, 12, 31)])),
}
_MAKE: dict[str, Any] = {
    "min": lambda: agg.min("by"),
    "max": lambda: agg.max("by"),
    "min_by": lambda: agg.min_by("value", "by"),
    "max_by": lambda: agg.max_by("value", "by"),
    "max_by_several": lambda: agg.max_by(("value", "by"), "by"),
    "all_min_by": lambda: agg.all_min_by(["by", "value"], "by"),
    "all_max_by": lambda: agg.all_max_by("value", "by"),
    "count_distinct": lambda: agg.count_distinct("value"),
}
_KEYS = st.sampled_from([None, "p", "q"])


@st.composite
def _columns(draw: Any) -> tuple[list[str], list[Any]]:
    """A key, a time, what is gone by and a value."""
    kinds = [draw(st.sampled_from(sorted(_TYPES))) for _ in range(2)]
    values = [st.none() | _TYPES[kind][1] for kind in kinds]
    rows = draw(
        st.lists(st.tuples(_KEYS, st.integers(-999, 1999), *values), min_size=1, max_size=20)
    )
    return kinds, rows


@pytest.mark.parametrize("name", sorted(_MAKE))
@given(_columns(), st.booleans(), st.integers(0, 2))
def test_as_if_records_were_added(
    name: str, columns: tuple[list[str], list[Any]], encoded: bool, offset: int
) -> None:
    """Also of texts with a dictionary, and of columns that begin in the middle of others."""
    (by, value), rows = columns
    offset = min(offset, len(rows) - 1)
    function = agg.of(found=_MAKE[name]())
    (one,) = function.aggregates.values()
    partial = partials_of(one, {"by": 2, "value": 3}, ["string", "bigint", by, value])
    combined = Combined(
        (0,), False, 1000, 0, tuple(partial), ((one.kind, tuple(range(len(partial)))),)
    )

    found = dict(_merged(combined, function, _batch(rows, by, value, encoded).slice(offset)))

    expected: dict[Any, Any] = {}
    for row in rows[offset:]:
        at = row[0], row[1] - row[1] % 1000
        record = {"by": row[2], "value": row[3]}
        expected[at] = function.add(record, expected.get(at) or function.create_accumulator())
    assert found.keys() == expected.keys()
    for at, held in expected.items():
        assert repr(function.get_result(found[at])) == repr(function.get_result(held))


def _batch(rows: list[Any], by: str, value: str, encoded: bool) -> Any:
    kinds = (pa.string(), pa.int64(), _TYPES[by][0], _TYPES[value][0])
    columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    texts = [encoded and pa.types.is_string(column.type) for column in columns]
    columns = [c.dictionary_encode() if text else c for c, text in zip(columns, texts, strict=True)]
    return pa.RecordBatch.from_arrays(columns, [str(at) for at in range(len(columns))])


def _merged(combined: Combined, function: Any, batch: Any) -> Any:
    """From two halves, each of which was combined."""
    middle = batch.num_rows // 2
    halves = [half for half in (batch.slice(0, middle), batch.slice(middle)) if half.num_rows]
    found: dict[Any, Any] = {}
    for key, start, _, part in combined.merged([combined.combine(half, 1) for half in halves]):
        before = found.get((key, start))
        found[key, start] = part if before is None else function.merge(before, part)
    return found


def test_a_dictionary_with_equal_entries() -> None:
    """Arrow does not forbid it."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", "x", "y"]))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["k"] * 4), pa.array([0] * 4), texts, pa.array([1, 2, 3, 4])], list("0123")
    )
    wanted = partials_of(agg.all_min_by("v", "b"), {"b": 2, "v": 3}, ["", "", "string", "bigint"])
    combined = Combined((0,), False, 10, 0, tuple(wanted), (("all_min_by", (0,)),))
    assert list(combined.merged([combined.combine(batch, 1)])) == [("k", 0, 4, (("x", [1, 2]),))]


def test_beside_numbers_of_records() -> None:
    """Rows of values, sums and numbers of records stay beside each other."""
    batch = _batch(
        [("p", 0, 1, "x"), ("q", 5, 2, "y"), ("p", 7, 1, "w")], "tinyint", "string", True
    )
    combined = Combined(
        (0,), False, 10, 0,
        (*partials_of(agg.all_max_by("v", "b"), {"b": 2, "v": 3}, ["", "", "int", "string"]),
         Partial("sum", (2,))),
        (("count", (NUMBER_OF_RECORDS,)), ("all_max_by", (0,)), ("sum", (1,))),
    )  # fmt: skip
    assert list(combined.merged([combined.combine(batch, 1)])) == [
        ("p", 0, 2, (2, (1, ["x", "w"]), 2)),
        ("q", 0, 1, (1, (2, ["y"]), 2)),
    ]


def test_pandas_is_not_imported() -> None:
    """It takes half a second, in every worker."""
    program = (
        "import sys, pyarrow as pa, numpy as np\n"
        "from penstock.runtime import extremes\n"
        "from penstock.runtime.grouping import Groups, column_of\n"
        "numbers = column_of(np.array([3, 1, 3]))\n"
        "texts = pa.DictionaryArray.from_arrays(column_of(np.array([0, 1, 0])), numbers)\n"
        "groups = Groups([column_of(np.array([1, 1, 1]))])\n"
        "for way in ('min', 'max'):\n"
        "    extremes.extreme_values(way)(groups, texts)\n"
        "    extremes.pairs_with(way)(groups, numbers, texts, numbers)\n"
        "    extremes.all_with(way)(groups, texts, numbers)\n"
        "extremes.different_values(groups, texts)\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
