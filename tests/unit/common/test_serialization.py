"""Schemas and encoders of connectors; the serializer interface."""

from io import BytesIO

import pytest

from penstock.common import (
    ByteArraySchema,
    Encoder,
    Row,
    SimpleStringSchema,
    Types,
    TypeSerializer,
)
from penstock.common.serialization import RowFieldExtractorSchema
from penstock.errors import InvalidArgumentError, TypeMismatchError


def test_simple_string():
    schema = SimpleStringSchema()
    assert schema.serialize("é") == b"\xc3\xa9"
    assert schema.deserialize(b"\xc3\xa9") == "é"
    assert SimpleStringSchema("latin-1").serialize("é") == b"\xe9"
    assert schema.get_produced_type() == Types.STRING()
    assert schema.is_end_of_stream("é") is False
    with pytest.raises(TypeMismatchError, match="got int 5"):
        schema.serialize(5)
    with pytest.raises(InvalidArgumentError, match="a known character set"):
        SimpleStringSchema("utf-9")


def test_bytes():
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"a")) == b"a"
    assert schema.deserialize(memoryview(b"a")) == b"a"
    with pytest.raises(TypeMismatchError):
        schema.serialize("a")


def test_row_field():
    assert RowFieldExtractorSchema(1).serialize(Row("k", b"v")) == b"v"
    with pytest.raises(TypeMismatchError, match=r"at \[0\]"):
        RowFieldExtractorSchema(0).serialize(Row("k", b"v"))
    with pytest.raises(InvalidArgumentError):
        RowFieldExtractorSchema(-1)


def test_line_encoder():
    assert Encoder.simple_string_encoder().encode(Row(1, "a")) == b"<Row(1, 'a')>\n"
    assert Encoder.simple_string_encoder("utf-16-le").encode("a") == b"a\0\n\0"


class Byte(TypeSerializer[int]):
    def serialize(self, element, stream):
        stream.write(bytes([element]))

    def deserialize(self, stream: BytesIO):
        return stream.read(1)[0]


def test_type_serializer():
    assert Byte().to_bytes(7) == b"\x07"
    assert Byte().from_bytes(b"\x07") == 7
    assert Byte() == Byte()
