"""TypeInformation: what every type must be able to do. Knows no concrete type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common._type_conversion import Converter, same
from penstock.common._type_plain import Plain, Serializer, msgpack_serializer
from penstock.errors import InvalidArgumentError
from penstock.refusals import NO_JAVA, refusing


@refusing({"get_java_type_info": NO_JAVA})
class TypeInformation(ABC):
    """The type of the records of a stream, of a key, or of the values of a state.

    A type information is a picklable value. The functions that it makes are not: ask for them on
    the worker.
    """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The type as JSON; `from_description` turns it back."""

    @abstractmethod
    def plain(self) -> Plain:
        """The pair of functions to and from what MessagePack can carry."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def converter(self) -> Converter | None:
        """A function that checks and converts a value, or None if every value fits as it is.

        It raises TypeMismatchError for a value that does not fit.
        """
        return None

    def as_kept(self) -> TypeInformation:
        """The type as a function's own state has it, where a float keeps all its bits.

        A program reads back what it wrote: in PyFlink, too, only what leaves the worker is cut.
        """
        return self

    def serializer(self) -> Serializer:
        """Functions to and from bytes, for values that have passed the converter."""
        return msgpack_serializer(self.plain())

    def need_conversion(self) -> bool:
        """Whether Flink's internal form of a value differs from the value."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        return obj

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TypeInformation)
            and type(self) is type(other)
            and self.describe() == other.describe()
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))


def converter_of(type_info: TypeInformation) -> Converter:
    """The converter, or the function that changes nothing."""
    return type_info.converter() or same


def require_type_info(what: str, value: object) -> TypeInformation:
    """`value` if it is a type information; a Python type is a common slip."""
    if isinstance(value, TypeInformation):
        return value
    raise InvalidArgumentError.of(what, "a TypeInformation such as Types.STRING()", value)
