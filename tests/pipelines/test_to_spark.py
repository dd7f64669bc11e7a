"""to_spark: the records of a bounded stream as a DataFrame, with or without a schema."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_records import Point, Reading

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, PenstockError

pytestmark = pytest.mark.spark


def test_without_a_schema(spark: Any, env: StreamExecutionEnvironment) -> None:
    """Names come from the records, types are found by Spark."""
    readings = [Reading("s1", 1.5, ["x"]), Reading("s2", 2.5)]
    frame = env.from_collection(readings).to_spark()

    assert dict(frame.dtypes) == {"sensor": "string", "celsius": "double", "tags": "array<string>"}
    rows = sorted(tuple(row) for row in frame.select("sensor", "celsius", "tags").collect())
    assert rows == [("s1", 1.5, ["x"]), ("s2", 2.5, [])]

    numbers = env.from_sequence(1, 3).key_by(lambda n: n % 2).sum().to_spark()
    assert sorted(row[0] for row in numbers.collect()) == [1, 2, 4]


def test_columns_in_the_order_of_the_fields(spark: Any, env: StreamExecutionEnvironment) -> None:
    frame = env.from_elements(Reading("s1", 1.5, ["x"])).to_spark()

    assert frame.columns == ["sensor", "celsius", "tags"]


def test_with_a_schema(spark: Any, env: StreamExecutionEnvironment) -> None:
    """Rows of any kind, and nothing passes through the driver's memory."""
    points = env.from_sequence(1, 1000).map(lambda n: Point(n, -n))
    dicts = env.from_elements({"y": 5, "x": None})

    frame = points.union(dicts).to_spark("x long, y int")

    assert frame.dtypes == [("x", "bigint"), ("y", "int")]
    assert frame.count() == 1001
    assert frame.where("x is null").collect() == [(None, 5)]
    assert frame.selectExpr("sum(x + y)").first()[0] == 0


def test_empty_and_unfit(spark: Any, env: StreamExecutionEnvironment) -> None:
    empty = env.from_collection([])
    assert empty.to_spark("a long").collect() == []
    with pytest.raises(InvalidArgumentError, match="pass a schema"):
        empty.to_spark()
    with pytest.raises(PenstockError, match="does not fit") as caught:
        env.from_elements(("text", 1)).to_spark("a long, b long")
    assert "test_to_spark.py:" in str(caught.value)


def test_needs_no_uid_of_its_own(spark: Any, env: StreamExecutionEnvironment) -> None:
    env.get_config().disable_auto_generated_uids()

    frame = env.from_elements((1,), (2,)).uid("numbers").to_spark("n long")

    assert sorted(row.n for row in frame.collect()) == [1, 2]
