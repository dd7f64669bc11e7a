"""From a stored type to a declared one: what every value becomes, and which ways there are none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, make_dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.common.typeinfo import TypeInformation, Types, type_info_of
from penstock.common.types import Row, RowKind
from penstock.state.evolution import Incompatible, conversion
from penstock.state.rewriting import msgpack_rewrite
from penstock.state.type_texts import type_text


def stored(type_info: TypeInformation) -> Any:
    """The description as a manifest has it."""
    return json.loads(json.dumps(type_info.describe()))


def reread(before: TypeInformation, after: TypeInformation, value: Any) -> Any:
    """A value that was stored as one type, read as another."""
    raw = before.serializer()[0](value)
    step = conversion(stored(before), after)
    return after.serializer()[1](raw if step is None else msgpack_rewrite(step)(raw))


# Pairs of types that fit, each with a value before and after


class Case(NamedTuple):
    before: TypeInformation
    after: TypeInformation
    old: Any
    new: Any


WHOLE = [Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()]
FRACTIONS = [Types.FLOAT(), Types.DOUBLE()]
small = st.integers(-128, 127)


@st.composite
def numbers(draw: Any) -> Case:
    before = draw(st.integers(0, 3))
    after = draw(st.sampled_from([*WHOLE[before:], *FRACTIONS]))
    old = draw(st.none() | small)
    whole = after in WHOLE or old is None
    return Case(WHOLE[before], after, old, old if whole else float(old))


def same(type_info: TypeInformation, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Case]:
    return values.map(lambda v: Case(type_info, type_info, v, v))


leaves = (
    numbers()
    | same(Types.STRING(), st.text(max_size=3))
    | same(Types.BOOLEAN(), st.booleans())
    | same(Types.PICKLED_BYTE_ARRAY(), st.tuples(small))
)


@st.composite
def composed(draw: Any, parts: st.SearchStrategy[Case]) -> Case:
    kind = draw(st.sampled_from(["list", "map", "odd map", "tuple", "row", "dataclass"]))
    part = draw(parts)
    if kind == "list":
        return Case(Types.LIST(part.before), Types.LIST(part.after), [part.old], [part.new])
    if kind in ("map", "odd map"):
        key_type, key = (Types.STRING(), "k") if kind == "map" else (Types.DOUBLE(), 0.5)
        return Case(
            Types.MAP(key_type, part.before),
            Types.MAP(key_type, part.after),
            {key: part.old},
            {key: part.new},
        )
    fields = [part, *draw(st.lists(parts, max_size=2))]
    if kind == "tuple":
        return Case(
            Types.TUPLE([p.before for p in fields]),
            Types.TUPLE([p.after for p in fields]),
            tuple(p.old for p in fields),
            tuple(p.new for p in fields),
        )
    return draw(fields_changed(fields, kind))


@st.composite
def fields_changed(draw: Any, fields: list[Case], kind: str) -> Case:
    """By name: the order is another, one may be gone, one may be new."""
    named = {f"f{i}": part for i, part in enumerate(fields)}
    kept = draw(st.permutations(sorted(named)))
    if len(kept) > 1 and draw(st.booleans()):
        kept = kept[1:]
    added = draw(st.booleans())
    if kind == "row":
        after = [named[name].after for name in kept] + [Types.INT()] * added
        return Case(
            Types.ROW_NAMED(list(named), [p.before for p in fields]),
            Types.ROW_NAMED([*kept, *["new"] * added], after),
            Row(**{name: part.old for name, part in named.items()}),
            Row(**{name: named[name].new for name in kept}, **({"new": None} if added else {})),
        )
    one = make_dataclass("One", [(name, Any) for name in named])
    new = [("new", list, field(default_factory=lambda: [7]))] if added else []
    other = make_dataclass("One", [*((name, Any) for name in kept), *new])
    types = {name: part.after for name, part in named.items()}
    types["new"] = Types.LIST(Types.INT())
    made = type(Types.DATACLASS(one))
    return Case(
        made(one, [(name, part.before) for name, part in named.items()]),
        made(other, [(name, types[name]) for name in [*kept, *["new"] * added]]),
        one(**{name: part.old for name, part in named.items()}),
        other(**{name: named[name].new for name in kept}),
    )


cases = st.recursive(leaves, composed, max_leaves=6)


@given(cases)
def test_a_value_becomes_what_it_should(case: Case) -> None:
    # As texts: 1 and 1.0 are equal.
    assert repr(reread(case.before, case.after, case.old)) == repr(case.new)


@given(cases)
def test_none_stays_none(case: Case) -> None:
    assume("Pickled" not in repr(case.before))
    assert reread(case.before, case.after, None) is None


@given(cases, cases)
def test_whatever_is_not_refused_gives_values_of_the_declared_type(one: Case, other: Case) -> None:
    try:
        found = reread(one.after, other.before, one.new)
    except Incompatible:
        return
    convert = other.before.as_kept().converter()
    assert convert is None or repr(convert(found)) == repr(found)


def test_a_new_field_of_a_row_is_none_even_if_it_is_pickled() -> None:
    before = Types.ROW_NAMED(["a"], [Types.LONG()])
    after = Types.ROW_NAMED(["b", "a"], [Types.PICKLED_BYTE_ARRAY(), Types.LONG()])
    assert reread(before, after, Row(a=1)) == Row(b=None, a=1)


@given(cases)
def test_a_type_and_itself(case: Case) -> None:
    assert conversion(stored(case.before), case.before) is None


@given(cases)
def test_a_description_reads_as_its_type(case: Case) -> None:
    assert type_text(stored(case.before)) == repr(case.before)


# What is read the same is left alone


@dataclass
class Point:
    x: int
    y: int


def moved(*fields: Any) -> TypeInformation:
    made = make_dataclass("Elsewhere", fields)
    made.__module__ = "another.module"
    return Types.DATACLASS(made)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Types.INT(), Types.LONG()),
        (Types.LONG(), Types.BIG_INT()),
        (Types.FLOAT(), Types.DOUBLE()),
        (Types.LIST(Types.INT()), Types.LIST(Types.LONG())),
        (Types.DATACLASS(Point), moved(("y", int), ("x", int))),
        (
            Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
            Types.ROW_NAMED(["b", "a"], [Types.STRING(), Types.LONG()]),
        ),
    ],
)
def test_nothing_to_do(before: TypeInformation, after: TypeInformation) -> None:
    assert conversion(stored(before), after) is None


def test_a_removed_field_is_gone_for_good() -> None:
    """Else it would come back when a later version adds one of that name."""
    step = conversion(stored(Types.DATACLASS(Point)), moved(("x", int)))
    assert step is not None
    assert step({"x": 1, "y": 2}) == {"x": 1}


def test_the_class_of_what_was_stored_need_not_be_there() -> None:
    described = stored(moved(("x", int)))
    step = conversion(described, type_info_of(make_dataclass("Now", [("x", float)])))
    assert step is not None
    assert step({"x": 1}) == {"x": 1.0}


def test_a_row_keeps_its_kind() -> None:
    before = Types.ROW_NAMED(["a"], [Types.INT()])
    row = Row(a=1)
    row.set_row_kind(RowKind.DELETE)
    found = reread(before, Types.ROW_NAMED(["a"], [Types.DOUBLE()]), row)
    assert found.get_row_kind() is RowKind.DELETE
    assert found == row


# Refusals


class Pair(NamedTuple):
    x: int


class Longer(NamedTuple):
    x: int
    y: int


@dataclass
class WithoutDefault:
    x: int
    y: int
    z: str


@dataclass
class OddDefault:
    x: int
    y: int
    z: str = 5  # type: ignore[assignment]


@dataclass
class Unrelated:
    a: int = 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (Types.LONG(), Types.INT(), "it was Long and is Integer"),
        (Types.DOUBLE(), Types.FLOAT(), "it was Double and is Float"),
        (Types.DOUBLE(), Types.LONG(), "it was Double and is Long"),
        (Types.BOOLEAN(), Types.INT(), "it was Boolean and is Integer"),
        (Types.BIG_INT(), Types.DOUBLE(), "it was BigInteger and is Double"),
        (Types.STRING(), Types.PICKLED_BYTE_ARRAY(), "it was String and is PickledByteArray"),
        (Types.LIST(Types.INT()), Types.LIST(Types.STRING()), "[] was Integer and is String"),
        (
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.PRIMITIVE_ARRAY(Types.INT()),
            "it was PrimitiveArray[Byte] and is PrimitiveArray[Integer]",
        ),
        (
            Types.LIST(Types.INT()),
            Types.BASIC_ARRAY(Types.INT()),
            "it was List[Integer] and is BasicArray[Integer]",
        ),
        (
            Types.TUPLE([Types.INT()]),
            Types.TUPLE([Types.INT(), Types.INT()]),
            "it had 1 elements and has 2",
        ),
        (
            Types.TUPLE([Types.INT(), Types.INT()]),
            Types.TUPLE([Types.INT(), Types.STRING()]),
            "[1] was Integer and is String",
        ),
        (
            Types.MAP(Types.INT(), Types.INT()),
            Types.MAP(Types.LONG(), Types.INT()),
            "{key} was Integer and is Long",
        ),
        (
            Types.MAP(Types.INT(), Types.ROW([Types.INT()])),
            Types.MAP(Types.INT(), Types.ROW([Types.STRING()])),
            "{value}.f0 was Integer and is String",
        ),
        (
            Types.DATACLASS(Point),
            Types.DATACLASS(WithoutDefault),
            ".z is new and has no default; give it one",
        ),
        (Types.DATACLASS(Point), Types.DATACLASS(OddDefault), ".z is new, and its default does"),
        (Types.DATACLASS(Point), Types.DATACLASS(Unrelated), "which has no field in common"),
        (Types.NAMED_TUPLE(Pair), Types.NAMED_TUPLE(Longer), ".y is new and has no default"),
        (Types.NAMED_TUPLE(Longer), Types.DATACLASS(Point), "it was Longer(x: Long, y: Long) and"),
    ],
)
def test_refused(before: TypeInformation, after: TypeInformation, said: str) -> None:
    with pytest.raises(Incompatible) as caught:
        conversion(stored(before), after)
    assert said in str(caught.value)
