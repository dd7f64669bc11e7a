"""Keys as bytes: equal keys, and only those, have equal bytes, in every process."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import ipaddress
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.types import Row, RowKind
from penstock.errors import InvalidKeyError
from penstock.state.keys import check_key, decode_key, encode_key, encode_map_key

UTC = dt.timezone.utc
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Mode(enum.Flag):
    READ = 1
    WRITE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Name(str, enum.Enum):
    A = "a"


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: Any


class Pixel(NamedTuple):
    """Equal to other pixels only."""

    x: int
    y: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pixel) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Path(tuple[Any, ...]):
    """A tuple by another name."""


@dataclasses.dataclass(frozen=True)
class City:
    name: str
    code: int = dataclasses.field(kw_only=True)
    upper: str = dataclasses.field(init=False)
    note: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "upper", self.name.upper())


@dataclasses.dataclass(frozen=True)
class Slim:
    __slots__ = ("a",)
    a: int


@dataclasses.dataclass(frozen=True, eq=False)
class ByIdentity:
    a: int


class Plain:
    """Equal by value, with nothing to help pickle."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.__dict__)))


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        return f"Slotted({self.left!r}, {self.right!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and (self.left, self.right) == (other.left, other.right)

    def __hash__(self) -> int:
        return hash((self.left, self.right))


class Identity:
    pass


class ChangingHash:
    """Equal to its copies, but each has another hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangingHash)

    def __hash__(self) -> int:
        return id(self)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.times()
    | st.times(timezones=st.sampled_from([UTC, EAST]))
    | st.datetimes()
    | st.datetimes(
        dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.sampled_from([UTC, EAST])
    )
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from([*Color, *Level, *Name, *Access])
)
keys = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.frozensets(inner, max_size=4)
        | st.lists(inner, max_size=3).map(lambda values: Row(*values))
        | st.builds(Point, st.integers(), inner)
    ),
    max_leaves=8,
)
# Numbers that are often equal to one another, and often not quite.
numbers = st.one_of(
    st.sampled_from([True, False, 0, 1, -1, 2**53, 2**53 + 1, 10**30, -0.0, 0.5, 1e300, 0.1]),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
).flatmap(lambda n: st.sampled_from([n, float(n) if abs(n) < 1e308 else n, Decimal(n)]))


@given(keys)
def test_round_trip(key):
    back = decode_key(encode_key(key))
    assert back == key
    assert hash(back) == hash(key)
    assert encode_key(back) == encode_key(key)


@given(keys, keys)
def test_equal_bytes_exactly_for_equal_keys(one, other):
    if encode_key(one) == encode_key(other):
        assert one == other
    if one == other and hash(one) == hash(other):
        assert encode_key(one) == encode_key(other)


plain_keys = st.recursive(
    st.sampled_from([0, 1, 2, 3, 0.5, "a", "b", b"a", dt.time(3, 4), dt.datetime(2020, 1, 1)]),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)


def disguised(key: Any) -> st.SearchStrategy[Any]:
    """Keys of all classes that are equal to a plain one."""
    if isinstance(key, tuple):
        parts = st.tuples(*map(disguised, key))
        made = parts | parts.map(Path)
        return made | parts.map(lambda both: Point(*both)) if len(key) == 2 else made
    if isinstance(key, frozenset):
        return st.tuples(*map(disguised, key)).map(frozenset)
    if isinstance(key, dt.datetime):
        return st.sampled_from([key, pd.Timestamp(key)])
    equals: list[Any] = [key]
    if isinstance(key, (int, float)):
        equals += [float(key), Decimal(key), Fraction(key), np.float64(key)]
    if isinstance(key, str):
        equals.append(np.str_(key))
    members = (*Level, *Access, Access.READ | Access.WRITE, *Name)
    return st.sampled_from(equals + [m for m in members if m == key])


@given(plain_keys.flatmap(lambda key: st.tuples(disguised(key), disguised(key))))
def test_equal_keys_of_different_classes_have_equal_bytes(both):
    one, other = both
    assert one == other
    assert hash(one) == hash(other)
    assert encode_key(one) == encode_key(other)


zones = st.integers(-23 * 60, 23 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))


@given(st.times(timezones=zones), zones)
def test_equal_times_have_equal_bytes(one, zone):
    there = dt.datetime.combine(dt.date(2020, 1, 2), one).astimezone(zone)
    other = there.timetz()
    assert (encode_key(one) == encode_key(other)) == (one == other)
    assert (one == other) == (there.date() == dt.date(2020, 1, 2))
    for key in (one, other):
        assert decode_key(encode_key(key)) == key


@given(numbers, numbers)
def test_numbers_are_one_key_exactly_if_they_are_equal(one, other):
    assert (encode_key(one) == encode_key(other)) == (one == other)
    assert (encode_key((one,)) == encode_key((other,))) == (one == other)


@pytest.mark.parametrize(
    "equals",
    [
        [1, True, 1.0, Decimal(1), Decimal("1.00"), Fraction(1), np.int64(1), np.bool_(True)],
        [np.uint8(1), np.float32(1), np.float64(1), 1],
        [0, False, 0.0, -0.0, Decimal("-0")],
        [0.5, Decimal("0.5"), Decimal("0.500"), Fraction(1, 2), np.float32(0.5)],
        [float("inf"), Decimal("Infinity"), np.float64("inf")],
        [Decimal("0.1"), Decimal("0.10")],
        [10**5000, Decimal(10) ** 5000],
        ["a", np.str_("a")],
        [b"a", np.bytes_(b"a")],
        [(1, ("a", True)), (1.0, ("a", 1))],
        [frozenset([1, "a"]), frozenset(["a", True])],
        [dt.datetime(2020, 1, 1, 12, tzinfo=UTC), dt.datetime(2020, 1, 1, 17, 30, tzinfo=EAST)],
        [Slotted(1, "a"), Slotted(1.0, "a")],
        [City("Rome", code=1, note="a"), City("Rome", code=1, note="b")],
        [1, Level.LOW, Access.READ],
        ["a", Name.A],
        [(1, "a"), Point(1, "a"), Point(Level.LOW, Name.A), Path([1, Name.A])],
        [Slotted(1, (1, 2)), Slotted(Level.LOW, Point(1, 2))],
        [dt.time(12, tzinfo=UTC), dt.time(17, 30, tzinfo=EAST)],
        [dt.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")],
    ],
)
def test_equal_keys_have_equal_bytes(equals):
    assert len(set(equals)) == 1
    assert len({encode_key(key) for key in equals}) == 1


@pytest.mark.parametrize(
    "different",
    [
        [None, "", b"", (), frozenset(), 0, Row(), "None", "0", b"0"],
        [1, "1", b"1", (1,), ((1,),), frozenset([1]), Row(1), Row(a=1), Row(b=1), Point(1, 1)],
        [Point(1, 2), Pixel(1, 2), Pixel(2, 1)],
        [(1, 23), (12, 3), ("1", 23), (1, 2, 3), ("a", "b"), ("a:b",), ("ab",)],
        [2**53, 2**53 + 1, float(2**54)],
        [Decimal("1." + "0" * 40 + "1"), Decimal("1." + "0" * 40 + "2"), 1],
        [Decimal("0.1"), 0.1, Decimal("0.11")],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)],
        [Row(1), Row.of_kind(RowKind.DELETE, 1)],
        [Color.RED, Color.BLUE, Mode.READ, Mode.WRITE, Mode.READ | Mode.WRITE, "RED"],
        [Plain(a=1), Plain(a=2), Plain(b=1), Slotted(1, 2), Slotted(2, 1)],
        ["é", "e\u0301", "\ud800", "\U0001f600"],
    ],
)
def test_different_keys_have_different_bytes(different):
    assert len({encode_key(key) for key in different}) == len(different)


@pytest.mark.parametrize(
    "key",
    [
        Color.BLUE,
        Mode.READ | Mode.WRITE,
        Mode(0),
        Pixel(1, ("a", None)),
        City("Rome", code=3),
        Slim(5),
        Plain(z=1, a="b", tags=frozenset("xyz")),
        Plain(listed=[1, 2]),
        Slotted("left", ("right", None)),
        Row(name="Ann", age=7),
        Row.of_kind(RowKind.UPDATE_AFTER, 1, None),
        ipaddress.ip_address("10.0.0.1"),
        UUID(int=7),
        Fraction(1, 3),
        int,
        pytest.param(-(10**6000), id="many digits"),
        pytest.param("\ud800", id="lone surrogate"),
    ],
)
def test_keys_come_back_as_what_they_were(key):
    back = decode_key(encode_key(key))
    assert type(back) is type(key)
    assert back == key
    assert hash(back) == hash(key)


@pytest.mark.parametrize(
    "key",
    [
        Point(1, ("a", None)),
        Level.LOW,
        Name.A,
        Access.READ | Access.WRITE,
        Path([1, 2]),
        (1, Point(Level.LOW, 2)),
        frozenset([Level.LOW]),
        Slotted(Level.LOW, Point(1, Name.A)),
        Color.RED,
        Row(a=Level.LOW),
    ],
    ids=repr,
)
def test_map_keys_keep_their_class(key):
    back = decode_key(encode_map_key(key))
    assert type(back) is type(key)
    assert back == key
    assert _classes(back) == _classes(key)


def _classes(key: Any) -> Any:
    """The classes of a key's parts."""
    if isinstance(key, (tuple, frozenset, Row)):
        return [type(part) for part in key]
    return [type(key.left), type(key.right)] if isinstance(key, Slotted) else type(key)


@given(keys)
def test_map_keys_round_trip(key):
    back = decode_key(encode_map_key(key))
    assert back == key
    assert encode_map_key(back) == encode_map_key(key)


def test_identity_of_parts_does_not_matter():
    text = "some text"
    copied = pickle.loads(pickle.dumps(text))
    assert copied is not text
    for make in (Slotted, lambda a, b: Plain(a=a, b=b), lambda a, b: Plain(listed=[a, b])):
        assert encode_key(make(text, text)) == encode_key(make(text, copied))


def test_the_order_in_which_attributes_were_set_does_not_matter():
    assert encode_key(Plain(a=1, b=2)) == encode_key(Plain(b=2, a=1))


def test_fields_that_are_not_compared_have_their_default():
    assert decode_key(encode_key(City("Rome", code=1, note="x"))).note == ""


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (float("nan"), "NaN"),
        (Decimal("NaN"), "NaN"),
        (Decimal("sNaN"), "NaN"),
        ((1, (float("nan"),)), "NaN"),
        (np.float32("nan"), "not equal"),
        (np.float64("nan"), "NaN"),
        (pd.NaT, "not equal"),
        ([1], "not hashable"),
        ({}, "not hashable"),
        ((1, [2]), "not hashable"),
        (Point(1, {}), "not hashable"),
        (Identity(), "__eq__ and __hash__ by value"),
        ((Identity(),), "__eq__ and __hash__ by value"),
        (ByIdentity(1), "__eq__ and __hash__ by value"),
        (ChangingHash(), "another hash"),
        (lambda: 0, "cannot be pickled"),
    ],
)
def test_what_cannot_be_a_key(key, reason):
    with pytest.raises(InvalidKeyError, match=reason):
        encode_key(key)


def test_classes_inside_functions_are_refused():
    @dataclasses.dataclass(frozen=True)
    class Local:
        a: int

    class Kind(enum.Enum):
        A = 1

    class Pair(NamedTuple):
        a: int

    for key in (Local(1), Kind.A):
        with pytest.raises(InvalidKeyError, match="top of a module"):
            encode_key(key)
    with pytest.raises(InvalidKeyError, match="top of a module"):
        encode_map_key(Pair(1))
    assert encode_key(Pair(1)) == encode_key((1,))


def test_check_key_only_asks_for_a_hash():
    check_key(float("nan"))
    with pytest.raises(InvalidKeyError, match="not hashable"):
        check_key([])


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (None, b"n"),
        (True, b"i1"),
        (-255, b"i-ff"),
        (1.5, b"f?\xf8\0\0\0\0\0\0"),
        ("é", b"s\xc3\xa9"),
        (b"\0x", b"b\0x"),
        (("a", 1), b"t2:sa2:i1"),
        (frozenset([2, 1]), b"F2:i12:i2"),
        (Decimal("0.10"), b"d0.1"),
        (dt.date(2020, 1, 2), b"D2020-01-02"),
        (dt.timedelta(seconds=-1), b"L-1000000"),
        (Row(a=1), b"r5:t2:sa2:i02:i1"),
    ],
)
def test_bytes_never_change(key, data):
    assert encode_key(key) == data


def test_bytes_do_not_depend_on_the_process():
    code = (
        "from penstock.state.keys import encode_key\n"
        "import ipaddress, uuid\n"
        "key = (frozenset(map(str, range(20))), ipaddress.ip_address('::1'), uuid.UUID(int=1))\n"
        "print(encode_key(key).hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
