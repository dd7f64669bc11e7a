"""ConfigOption: a key with its type, default and help. Which options exist is not known here."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, cast

from penstock.common.time import Duration, Time, parse_duration, to_millis
from penstock.errors import InvalidArgumentError

__all__ = ["ConfigOption", "ConfigOptions", "OptionType"]

T = TypeVar("T")


# Sizes as Flink and Spark write them; each unit is 1024 of the one before.
_MEMORY_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_MEMORY = re.compile(r"\s*(\d+)\s*(?:(?:([kmgt])(?:i?b)?)|b|bytes)?\s*")


class OptionType(Enum):
    """How a value is read; a duration is kept as whole milliseconds, memory as bytes."""

    BOOLEAN = "boolean"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    DURATION = "duration"
    MEMORY = "memory"
    ENUM = "enum"


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """One option; `fallback_keys` are older names that are read when `key` is not set."""

    key: str
    type: OptionType
    default: T
    help: str = ""
    choices: tuple[str, ...] = ()
    fallback_keys: tuple[str, ...] = ()

    def parse(self, value: object) -> T:
        """`value` in this option's type, from that type or from text."""
        if self.type is OptionType.ENUM:
            return cast(T, _parse_enum(self.key, value, self.choices))
        return cast(T, _PARSERS[self.type](self.key, value))


class ConfigOptions:
    """Builds options the way Flink does: ``ConfigOptions.key("a").int_type().default_value(1)``."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.INT)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.INT)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.FLOAT)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.FLOAT)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.STRING)

        def duration_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, OptionType.DURATION)

    class TypedConfigOptionBuilder(Generic[T]):
        def __init__(self, key: str, option_type: OptionType) -> None:
            self._key = key
            self._type = option_type

        def default_value(self, value: T) -> ConfigOption[T]:
            option: ConfigOption[T] = ConfigOption(self._key, self._type, value)
            return ConfigOption(self._key, self._type, option.parse(value))

        def no_default_value(self) -> ConfigOption[T | None]:
            return ConfigOption(self._key, self._type, None)


def _parse_boolean(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise InvalidArgumentError.of(key, "true or false", value)


def _parse_int(key: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    raise InvalidArgumentError.of(key, "a whole number", value)


def _parse_float(key: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise InvalidArgumentError.of(key, "a number", value)


def _parse_string(key: str, value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InvalidArgumentError.of(key, "text", value)


def _parse_duration(key: str, value: object) -> int:
    if isinstance(value, str):
        return parse_duration(value, key)
    if isinstance(value, (int, dt.timedelta, Time, Duration)):
        return to_millis(value, key)
    raise InvalidArgumentError.of(key, "a duration such as '10 s', or milliseconds", value)


def _parse_memory(key: str, value: object) -> int:
    found = _MEMORY.fullmatch(value.lower()) if isinstance(value, str) else None
    if found is not None:
        return int(found[1]) << _MEMORY_SHIFTS[found[2] or ""]
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidArgumentError.of(key, "a size such as '512m', or bytes", value)


def _parse_enum(key: str, value: object, choices: tuple[str, ...]) -> str:
    """The declared spelling of a choice; case and the kind of dash do not matter."""
    wanted = _loosely(_parse_string(key, value))
    for choice in choices:
        if _loosely(choice) == wanted:
            return choice
    raise InvalidArgumentError.of(key, "one of " + ", ".join(choices), value)


def _loosely(text: str) -> str:
    return text.strip().lower().replace("_", "-")


_PARSERS: dict[OptionType, Callable[[str, Any], object]] = {
    OptionType.BOOLEAN: _parse_boolean,
    OptionType.INT: _parse_int,
    OptionType.FLOAT: _parse_float,
    OptionType.STRING: _parse_string,
    OptionType.DURATION: _parse_duration,
    OptionType.MEMORY: _parse_memory,
}
