"""Schemas between records and the bytes of a connector. Knows nothing of any connector."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from penstock.common._type_text import java_text
from penstock.common.typeinfo import TypeInformation, Types
from penstock.errors import InvalidArgumentError, TypeMismatchError
from penstock.pyflink_names import missing_name

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringEncoder",
    "SimpleStringSchema",
]

__getattr__ = missing_name(__name__)


class SerializationSchema(ABC):
    """Turns a record into the bytes of a message."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...


class DeserializationSchema(ABC):
    """Turns the bytes of a message into a record; None skips the message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any: ...

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this record says that no more will come."""
        return False

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in one character set."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = known_charset(charset)

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise TypeMismatchError.of("str for SimpleStringSchema", value)
        return value.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        return bytes(message).decode(self._charset)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeMismatchError.of("bytes for ByteArraySchema", value)
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row, which must be bytes: for instance a message's key."""

    def __init__(self, field_index: int) -> None:
        if not isinstance(field_index, int) or isinstance(field_index, bool) or field_index < 0:
            raise InvalidArgumentError.of("field_index", "zero or a positive number", field_index)
        self._field_index = field_index

    def serialize(self, value: Sequence[Any]) -> bytes:
        field = value[self._field_index]
        if not isinstance(field, (bytes, bytearray)):
            raise TypeMismatchError.of("bytes", field).inside(f"[{self._field_index}]")
        return bytes(field)


class Encoder(ABC):
    """Turns a record into bytes of a row-wise file, its separator included."""

    @abstractmethod
    def encode(self, value: Any) -> bytes: ...

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """The value's text and a line feed: Java's text if the stream's type is declared."""
        return LineEncoder(charset_name)


class LineEncoder(Encoder):
    def __init__(self, charset: str, type_info: TypeInformation | None = None) -> None:
        self._charset = known_charset(charset)
        self._type = type_info
        self._text: Callable[[Any], str] | None = None  # cannot be pickled

    def of_type(self, type_info: TypeInformation | None) -> LineEncoder:
        """The same for records of that type."""
        return LineEncoder(self._charset, type_info)

    def encode(self, value: Any) -> bytes:
        if self._text is None:
            self._text = java_text(self._type)
        return f"{self._text(value)}\n".encode(self._charset)

    def __reduce__(self) -> tuple[Any, ...]:
        return LineEncoder, (self._charset, self._type)


class SimpleStringEncoder(LineEncoder):
    """What `Encoder.simple_string_encoder` gives, by its name in Flink 1.12."""

    def __init__(self, charset_name: str = "UTF-8") -> None:
        super().__init__(charset_name)


class BulkWriterFactory(ABC):
    """Makes writers of formats that need many records at once; formats implement it."""

    @abstractmethod
    def create(self, path: str) -> Any: ...


def known_charset(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except (LookupError, TypeError):
        raise InvalidArgumentError.of("charset", "a known character set", charset) from None
