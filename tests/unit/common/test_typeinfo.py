"""Type information as values: equality, description, inference from Python types."""

import collections
import dataclasses
import datetime as dt
import decimal
import json
import pickle
from typing import Any, Dict, List, NamedTuple, NewType, Optional, Union  # noqa: UP035

import pytest

from penstock.common import Types
from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    RowTypeInfo,
    TypeInformation,
    from_description,
    type_info_of,
)
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
PICKLED = Types.PICKLED_BYTE_ARRAY()


class Point(NamedTuple):
    x: float
    tag: Optional[str]  # noqa: UP045


@dataclasses.dataclass
class Node:
    name: str
    where: Point
    parent: "Node | None"
    anything: Any


Untyped = collections.namedtuple("Untyped", "a b")
UserId = NewType("UserId", int)

EVERY_TYPE = [
    *(BasicTypeInfo(t) for t in BasicType if t is not BasicType.INSTANT),
    Types.INSTANT(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
    *(LocalTimeTypeInfo(t) for t in LocalTimeTypeInfo.TimeType),
    PICKLED,
    BYTES,
    Types.BASIC_ARRAY(Types.STRING()),
    Types.OBJECT_ARRAY(PICKLED),
    Types.LIST(Types.LIST(Types.INT())),
    Types.MAP(Types.STRING(), Types.LONG()),
    Types.TUPLE([Types.INT(), Types.STRING()]),
    Types.ROW([Types.INT()]),
    Types.ROW_NAMED(["id", "n"], [Types.STRING(), Types.INT()]),
    ExternalTypeInfo(Types.INT()),
    Types.DATACLASS(Node),
    Types.NAMED_TUPLE(Point),
]


@pytest.mark.parametrize("type_info", EVERY_TYPE, ids=repr)
def test_survives_json_and_pickle(type_info):
    for clone in (
        from_description(json.loads(json.dumps(type_info.describe()))),
        pickle.loads(pickle.dumps(type_info)),
    ):
        assert clone == type_info
        assert hash(clone) == hash(type_info)
        assert type(clone) is type(type_info)


def test_all_types_differ():
    assert len(set(EVERY_TYPE)) == len(EVERY_TYPE)
    assert len({repr(t) for t in EVERY_TYPE}) == len(EVERY_TYPE)


def test_repr():
    row = Types.ROW_NAMED(["id", "n"], [Types.STRING(), Types.INT()])
    assert repr(row) == "Row(id: String, n: Integer)"
    assert repr(Types.MAP(Types.STRING(), Types.LIST(Types.LONG()))) == "Map[String, List[Long]]"
    assert repr(Types.TUPLE([Types.INT(), Types.DOUBLE()])) == "Tuple(Integer, Double)"
    assert repr(Types.NAMED_TUPLE(Point)) == "Point(x: Double, tag: String)"


def test_row_names():
    row = Types.ROW([Types.INT(), Types.STRING()])
    assert row.get_field_names() == ["f0", "f1"]
    assert row.get_field_types() == [Types.INT(), Types.STRING()]
    assert (row.get_field_index("f1"), row.get_field_index("x")) == (1, -1)
    assert row == Types.ROW_NAMED(["f0", "f1"], [Types.INT(), Types.STRING()])


@pytest.mark.parametrize(
    ("python_type", "type_info"),
    [
        (None, PICKLED),
        (Types.INT(), Types.INT()),
        (int, Types.LONG()),
        (float, Types.DOUBLE()),
        (str, Types.STRING()),
        (bool, Types.BOOLEAN()),
        (bytes, BYTES),
        (decimal.Decimal, Types.BIG_DEC()),
        (dt.date, Types.SQL_DATE()),
        (dt.time, Types.SQL_TIME()),
        (dt.datetime, PICKLED),
        (Instant, Types.INSTANT()),
        (list[int], Types.LIST(Types.LONG())),
        (List[int], Types.LIST(Types.LONG())),  # noqa: UP006
        (dict[str, list[float]], Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE()))),
        (Dict[str, int], Types.MAP(Types.STRING(), Types.LONG())),  # noqa: UP006
        (tuple[int, str], Types.TUPLE([Types.LONG(), Types.STRING()])),
        (tuple[int, ...], PICKLED),
        (set[int], PICKLED),
        (list, PICKLED),
        (object, PICKLED),
        (Any, PICKLED),
        (int | None, Types.LONG()),
        (Optional[int], Types.LONG()),  # noqa: UP045
        (Union[int, str], PICKLED),  # noqa: UP007
        (UserId, Types.LONG()),
        (Point, Types.NAMED_TUPLE(Point)),
        (Node, Types.DATACLASS(Node)),
    ],
)
def test_type_info_of(python_type, type_info):
    assert type_info_of(python_type) == type_info


@pytest.mark.parametrize("value", [42, "str", [int], (1, 2), len])
def test_type_info_of_rejects_values(value):
    with pytest.raises(InvalidArgumentError, match="a type must be a TypeInformation"):
        type_info_of(value)


def test_dataclass_fields():
    node = Types.DATACLASS(Node)
    assert node.get_field_names() == ["name", "where", "parent", "anything"]
    assert node.get_field_types() == [Types.STRING(), Types.NAMED_TUPLE(Point), PICKLED, PICKLED]


def test_annotations_out_of_reach_are_pickled():
    class Hidden:
        pass

    @dataclasses.dataclass
    class Local:
        hidden: "Hidden"
        n: int

    assert Types.DATACLASS(Local).get_field_types() == [PICKLED, Types.LONG()]
    assert Types.NAMED_TUPLE(Untyped).get_field_types() == [PICKLED, PICKLED]
    with pytest.raises(CheckpointMismatchError, match="top level of an importable module"):
        from_description(Types.DATACLASS(Local).describe())


def test_wrong_arguments():
    with pytest.raises(InvalidArgumentError, match="field 0 of Row"):
        Types.ROW([int])
    with pytest.raises(InvalidArgumentError, match="needs as many names"):
        Types.ROW_NAMED(["a"], [])
    with pytest.raises(InvalidArgumentError, match="names must differ"):
        Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()])
    with pytest.raises(InvalidArgumentError, match="a primitive type"):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    with pytest.raises(InvalidArgumentError, match="a basic type"):
        Types.BASIC_ARRAY(Types.LIST(Types.INT()))
    with pytest.raises(InvalidArgumentError, match="@dataclass"):
        Types.DATACLASS(int)
    with pytest.raises(InvalidArgumentError, match="NamedTuple"):
        Types.NAMED_TUPLE(tuple)
    with pytest.raises(InvalidArgumentError, match="unknown kind of type 'novel'"):
        from_description({"kind": "novel"})


def test_internal_types():
    assert Types.SQL_DATE().to_internal_type(dt.date(1970, 1, 2)) == 1
    assert Types.SQL_TIME().to_internal_type(dt.time(0, 0, 1)) == 1_000_000
    assert Types.SQL_TIMESTAMP().from_internal_type(1) == dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert Types.INSTANT().to_internal_type(Instant(1, 2000)) == 1_000_002
    assert Types.INSTANT().from_internal_type(-1) == Instant(-1, 999_999_000)
    row = RowTypeInfo([Types.SQL_DATE()], ["d"])
    assert row.need_conversion()
    assert row.to_internal_type({"d": dt.date(1970, 1, 2)}) == (1,)
    assert row.from_internal_type((1,)).d == dt.date(1970, 1, 2)
    assert not Types.STRING().need_conversion()
    assert Types.STRING().to_internal_type("a") == "a"


def test_there_is_no_java():
    with pytest.raises(UnsupportedFeatureError, match="no Flink Java objects"):
        Types.STRING().get_java_type_info()
    assert issubclass(RowTypeInfo, TypeInformation)
