"""Avro records as a type, and which schemas can read what others have written."""

from __future__ import annotations

import importlib
import io
import json
import pickle
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common._type_avro import avro_difference
from penstock.common.typeinfo import Types, from_description
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.errors import (
    InvalidArgumentError,
    MissingPackageError,
    RefusedNameError,
    TypeMismatchError,
)
from penstock.state.evolution import Incompatible, conversion
from penstock.state.rewriting import msgpack_rewrite


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    """Fields are (name, type) or (name, type, default)."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})}
            for f in fields
        ],
    }


def avro(*fields: Any, name: str = "R") -> GenericRecordAvroTypeInfo:
    return GenericRecordAvroTypeInfo(AvroSchema(record(*fields, name=name)))


# A type like others


READING = avro(("id", "long"), ("level", "double", 0.5), ("tags", {"type": "map", "values": "int"}))


def test_records_are_dicts():
    dumps, loads = READING.serializer()
    value = READING.converter()({"id": 7, "tags": {"a": 1}})
    assert value == {"id": 7, "level": 0.5, "tags": {"a": 1}}
    assert loads(dumps(value)) == value
    assert READING.converter()(None) is None
    assert loads(dumps(None)) is None


@pytest.mark.parametrize(
    "value",
    [
        {"id": 1.5, "tags": {}},
        {"id": "x", "tags": {}},
        {"id": 1},
        {"id": 1, "tags": {}, "unknown": 1},
        {"id": 2**70, "tags": {}},
        [1, {}],
    ],
)
def test_other_values_do_not_fit(value):
    with pytest.raises(TypeMismatchError, match=r"Avro\[R\]"):
        READING.converter()(value)


def test_it_is_found_again_by_its_description():
    again = from_description(json.loads(json.dumps(READING.describe())))
    assert again == READING
    assert pickle.loads(pickle.dumps(READING)) == READING
    assert repr(Types.LIST(READING)) == "List[Avro[R]]"


def test_schemas_from_text_and_file(tmp_path: Path):
    text = json.dumps(record(("id", "long")))
    path = tmp_path / "schema.avsc"
    path.write_text(text)
    assert AvroSchema.parse_string(text) == AvroSchema.parse_file(str(path))
    with pytest.raises(InvalidArgumentError, match="JSON"):
        AvroSchema.parse_string("{")
    with pytest.raises(InvalidArgumentError, match="no Avro schema"):
        AvroSchema.parse_string(json.dumps(record(("id", "longer"))))
    with pytest.raises(InvalidArgumentError, match="that of a record"):
        GenericRecordAvroTypeInfo(AvroSchema("long"))
    with pytest.raises(InvalidArgumentError, match="parse_string"):
        GenericRecordAvroTypeInfo(text)  # type: ignore[arg-type]


def test_without_fastavro(monkeypatch: pytest.MonkeyPatch):
    def no_such(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", no_such)
    with pytest.raises(MissingPackageError, match=r"pip install 'penstock\[avro\]'"):
        AvroSchema(record(("never seen", "long")))


def test_what_is_still_to_come_explains():
    with pytest.raises(RefusedNameError, match="row G3"):
        importlib.import_module("penstock.datastream.formats.avro").AvroInputFormat


# Resolution


def reread(before: Any, after: Any, value: Any) -> Any:
    raw = before.serializer()[0](value)
    step = conversion(json.loads(json.dumps(before.describe())), after)
    return after.serializer()[1](raw if step is None else msgpack_rewrite(step)(raw))


COLOURS = {"type": "enum", "name": "C", "symbols": ["RED", "BLUE"]}
FEWER = {"type": "enum", "name": "C", "symbols": ["RED"]}
WITH_DEFAULT = {**FEWER, "default": "RED"}


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ([("a", "int")], [("a", "int"), ("b", "string", "x")], {"a": 1}, {"a": 1, "b": "x"}),
        ([("a", "int"), ("b", "string")], [("a", "int")], {"a": 1, "b": "x"}, {"a": 1}),
        (
            [("a", "int"), ("b", "string")],
            [("b", "string"), ("a", "double")],
            {"a": 1, "b": "x"},
            {"b": "x", "a": 1.0},
        ),
        ([("a", "int")], [("a", ["null", "long"])], {"a": 1}, {"a": 1}),
        (
            [("a", {"type": "array", "items": "int"})],
            [("a", {"type": "array", "items": "float"})],
            {"a": [1]},
            {"a": [1.0]},
        ),
        ([("c", COLOURS)], [("c", WITH_DEFAULT)], {"c": "BLUE"}, {"c": "RED"}),
        (
            [("r", record(("a", "int"), name="S"))],
            [("r", record(("a", "int"), ("b", "int", 3), name="S"))],
            {"r": {"a": 1}},
            {"r": {"a": 1, "b": 3}},
        ),
    ],
    ids=["added", "removed", "reordered", "optional", "array", "enum", "nested"],
)
def test_resolved(before, after, old, new):
    assert repr(reread(avro(*before), avro(*after), old)) == repr(new)
    lists = Types.LIST(avro(*before)), Types.LIST(avro(*after))
    assert reread(*lists, [old, None]) == [new, None]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([("a", "int")], [("b", "int")], ".b is new and has no default"),
        ([("a", "long")], [("a", "int")], ".a was long and is int"),
        ([("a", ["null", "int"])], [("a", "int")], ".a was null and is int"),
        ([("a", "string")], [("a", ["null", "int"])], ".a was string and is [null, int]"),
        ([("c", COLOURS)], [("c", FEWER)], ".c has no symbol 'BLUE' any more, and no default"),
        (
            [("f", {"type": "fixed", "name": "F", "size": 4})],
            [("f", {"type": "fixed", "name": "F", "size": 8})],
            ".f had 4 bytes, not 8",
        ),
        (
            [("m", {"type": "map", "values": record(("a", "string"), name="S")})],
            [("m", {"type": "map", "values": record(("a", "int"), name="S")})],
            ".m{}.a was string and is int",
        ),
    ],
)
def test_not_resolved(before, after, said):
    with pytest.raises(Incompatible, match="cannot be resolved") as caught:
        conversion(avro(*before).describe(), avro(*after))
    assert said in str(caught.value)


def test_a_record_within_itself():
    tree = record(("n", "int"), ("next", ["null", "T"], None), name="T")
    wider = record(("n", "long"), ("m", "int", 1), ("next", ["null", "T"], None), name="T")
    types = [GenericRecordAvroTypeInfo(AvroSchema(s)) for s in (tree, wider)]
    found = reread(*types, {"n": 1, "next": {"n": 2, "next": None}})
    assert found == {"n": 1, "m": 1, "next": {"n": 2, "m": 1, "next": None}}


def test_a_name_that_was_another():
    other = record(("b", "int"), name="Q")
    other["aliases"] = ["R"]
    other["fields"][0]["aliases"] = ["a"]
    now = GenericRecordAvroTypeInfo(AvroSchema(other))
    assert reread(avro(("a", "int")), now, {"a": 1}) == {"b": 1}
    with pytest.raises(Incompatible, match="was record R and is record Q"):
        conversion(avro(("a", "int")).describe(), avro(("a", "int"), name="Q"))


def test_only_the_documentation_has_changed():
    documented = record(("a", "int"))
    documented["doc"] = "a record"
    now = GenericRecordAvroTypeInfo(AvroSchema(documented))
    assert conversion(avro(("a", "int")).describe(), now) is None


primitive = st.sampled_from(
    ["null", "boolean", "int", "long", "float", "double", "string", "bytes"]
)
VALUES: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 3,
    "long": 2**40,
    "float": 0.5,
    "double": 0.1,
    "string": "s",
    "bytes": b"s",
}
union = st.lists(primitive, min_size=1, max_size=3, unique=True)
part = primitive | union | primitive.map(lambda p: {"type": "array", "items": p})
fields = st.dictionaries(st.sampled_from("abc"), part, min_size=1).map(lambda d: list(d.items()))


def values_of(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [VALUES[branch] for branch in schema]
    if isinstance(schema, dict):
        return [[VALUES[schema["items"]]]]
    return [VALUES[schema]]


@given(fields, fields)
def test_whatever_is_not_refused_is_read_by_fastavro(before, after):
    """Every branch of every union, one after the other."""
    written, read = avro(*before), avro(*after)
    if avro_difference(written.schema.schema, read.schema) is not None:
        return
    first = {name: values_of(schema)[0] for name, schema in before}
    for name, schema in before:
        for value in values_of(schema):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, written.schema.schema, {**first, name: value})
            out.seek(0)
            found = fastavro.schemaless_reader(out, written.schema.schema, read.schema.schema)
            assert reread(written, read, {**first, name: value}) == found
