"""Results as Spark DataFrames."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.common.types import Row
from penstock.errors import InvalidArgumentError


def arrow_schema(session: SparkSession, schema: Any) -> Any:
    """The Arrow schema of a StructType or a DDL text."""
    struct = session.createDataFrame([], schema).schema
    return to_arrow_schema(struct)


def frame_of_values(session: SparkSession, values: list[Any]) -> DataFrame:
    if not values:
        raise InvalidArgumentError(
            "the stream is empty, so the types of its rows cannot be found; "
            "pass a schema: to_spark('id string, n long')"
        )
    rows = [_spark_row(value) for value in values]
    return session.createDataFrame(rows)


def _spark_row(value: Any) -> Any:
    if isinstance(value, Row):
        named = getattr(value, "_fields", None)
        return SparkRow(**value.as_dict()) if named else tuple(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return SparkRow(**dataclasses.asdict(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return SparkRow(**value._asdict())
    if isinstance(value, dict):
        return SparkRow(**value)
    return value if isinstance(value, tuple | list) else (value,)
