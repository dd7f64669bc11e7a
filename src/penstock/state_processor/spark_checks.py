"""Whether a DataFrame's columns fit a state, before Spark reads a single row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    VarcharType,
)

from penstock.errors import InvalidArgumentError
from penstock.state.arrow_values import arrow_type

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_TEXT = (StringType, CharType, VarcharType)


def check_column(
    frame: DataFrame, column: str, described: Mapping[str, Any], type_text: str, what: str
) -> None:
    """Refuse a column that a state's type cannot be made of."""
    found = column_type(frame, column, what)
    if described["kind"] == "pickled":
        return
    expected = from_arrow_type(arrow_type(described), prefer_timestamp_ntz=True)
    problem = _misfit(found, expected, column)
    if problem is not None:
        where, actual, wanted = problem
        raise InvalidArgumentError(
            f"{what} is declared as {type_text}, for which column {where!r} must be "
            f"{wanted.simpleString()}, and it is {actual.simpleString()}; cast it, as in "
            f"col({where!r}).cast({wanted.simpleString()!r}), or declare another type"
        )


def column_type(frame: DataFrame, column: str, what: str) -> DataType:
    for field in frame.schema.fields:
        if field.name == column:
            return field.dataType
    raise InvalidArgumentError(
        f"there is no column {column!r} for {what}; the DataFrame has {', '.join(frame.columns)}"
    )


def _misfit(
    found: DataType, expected: DataType, where: str
) -> tuple[str, DataType, DataType] | None:
    """Where two types part, with both; None if every value of one fits the other."""
    if isinstance(expected, StructType) and isinstance(found, StructType):
        if set(found.names) != set(expected.names):
            return where, found, expected
        inner = ((f"{where}.{f.name}", found[f.name].dataType, f.dataType) for f in expected)
        return next(
            (m for at, one, other in inner if (m := _misfit(one, other, at)) is not None), None
        )
    if isinstance(expected, ArrayType) and isinstance(found, ArrayType):
        return _misfit(found.elementType, expected.elementType, f"{where}.element")
    if isinstance(expected, MapType) and isinstance(found, MapType):
        return _misfit(found.keyType, expected.keyType, f"{where}.key") or _misfit(
            found.valueType, expected.valueType, f"{where}.value"
        )
    return None if _fits(found, expected) else (where, found, expected)


def _fits(found: DataType, expected: DataType) -> bool:
    if isinstance(expected, _WHOLE):
        return isinstance(found, _WHOLE[: _WHOLE.index(type(expected)) + 1])
    if isinstance(expected, DoubleType):
        return isinstance(found, FloatType | DoubleType)
    if isinstance(expected, DecimalType):
        # A number that does not fit after all is found when its row is read.
        decimal = isinstance(found, DecimalType) and (found.scale == 0 or expected.scale > 0)
        return decimal or isinstance(found, _WHOLE)
    if isinstance(expected, StringType):
        return isinstance(found, _TEXT)
    return type(found) is type(expected)
