"""What the schemas of rows in text formats share: a row type, and functions made where they run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.errors import InvalidArgumentError, MalformedRecordError, PenstockError


def row_type(what: str, type_info: Any) -> RowTypeInfo:
    """`type_info` if it says which fields a row has."""
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidArgumentError.of(
            f"the type of {what}", "Types.ROW(...) or Types.ROW_NAMED(...)", type_info
        )
    return type_info


class _RowSchema:
    """Travels by its settings. The functions cannot, and are made again where they are needed."""

    _made: Callable[[Any], Any] | None = None

    def __init__(self, type_info: RowTypeInfo, **settings: Any) -> None:
        self._type = type_info
        self._settings = settings
        self._made = self._make()  # at once, for errors of the type are errors of the program

    @abstractmethod
    def _make(self) -> Callable[[Any], Any]: ...

    def _convert(self) -> Callable[[Any], Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return {"_type": self._type, "_settings": self._settings}


class RowReader(_RowSchema, DeserializationSchema):
    """Rows from messages."""

    format: str

    def deserialize(self, message: bytes) -> Any:
        """The row; None, so that the message is skipped, if errors are to be ignored."""
        try:
            return self._convert()(bytes(message))
        except (ArithmeticError, PenstockError, LookupError, TypeError, ValueError) as error:
            if self._settings["ignore_errors"]:
                return None
            raise MalformedRecordError.of(self.format, message, error) from None

    def get_produced_type(self) -> TypeInformation:
        return self._type


class RowWriter(_RowSchema, SerializationSchema):
    """Messages from rows."""

    def serialize(self, value: Any) -> bytes:
        message: bytes = self._convert()(value)
        return message
