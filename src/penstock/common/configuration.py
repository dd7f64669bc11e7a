"""Configuration: keys and values, read and written by type. Which keys exist is not known here."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from penstock.common.config_options import ConfigOption, OptionType
from penstock.common.time import Duration, Time
from penstock.errors import InvalidArgumentError

__all__ = ["Configuration"]

T = TypeVar("T")

Keys = set[str]  # inside the class, `set` is the method


class Configuration:
    """A dict from key to value with Flink's typed accessors."""

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = dict(other._values) if other is not None else {}

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        configuration = cls()
        for key, value in map.items():
            configuration._put(key, value)
        return configuration

    def get(self, option: ConfigOption[T]) -> T:
        """The value of an option, or its default."""
        for key in (option.key, *option.fallback_keys):
            if key in self._values:
                return option.parse(self._values[key])
        return option.default

    def set(self, option: ConfigOption[T], value: Any) -> Configuration:
        """Set an option, or unset it with None; raises if the value is not of its type."""
        if value is None:
            for key in (option.key, *option.fallback_keys):
                self._values.pop(key, None)
            return self
        return self._put(option.key, option.parse(value))

    def contains(self, option: ConfigOption[Any]) -> bool:
        return any(key in self._values for key in (option.key, *option.fallback_keys))

    def get_string(self, key: str, default_value: str) -> str:
        return as_text(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        return self._put_typed(key, value, str, "text")

    def get_integer(self, key: str, default_value: int) -> int:
        return self.get(ConfigOption(key, OptionType.INT, default_value))

    def set_integer(self, key: str, value: int) -> Configuration:
        return self._put_typed(key, value, int, "a whole number")

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self.get(ConfigOption(key, OptionType.BOOLEAN, default_value))

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self._put_typed(key, value, bool, "true or false")

    def get_float(self, key: str, default_value: float) -> float:
        return self.get(ConfigOption(key, OptionType.FLOAT, default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        return self._put_typed(key, value, (int, float), "a number")

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        value = self._values.get(key, default_value)
        if not isinstance(value, (bytes, bytearray)):
            raise InvalidArgumentError.of(key, "bytes", value)
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        if not isinstance(value, (bytes, bytearray)):
            raise InvalidArgumentError.of(key, "bytes", value)
        return self._put(key, bytes(value))

    def key_set(self) -> Keys:
        return set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        for key, value in other._values.items():
            self._values[(prefix or "") + key] = value
        return self

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        return {key: as_text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        return self._values.pop(key, None) is not None

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """Items of a list written as ``[a, b]`` or ``a;b``."""
        text = value.strip()
        if text.startswith("[") and text.endswith("]"):
            text, separator = text[1:-1], ","
        else:
            separator = ";"
        items = next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
        return [item.strip().strip("'\"") for item in items if item.strip()]

    def _put(self, key: str, value: Any) -> Configuration:
        if not isinstance(key, str) or not key:
            raise InvalidArgumentError.of("a configuration key", "text", key)
        if value is None:
            raise InvalidArgumentError(f"{key} cannot be None; use remove_config() to unset it")
        self._values[key] = value
        return self

    def _put_typed(
        self, key: str, value: Any, types: type | tuple[type, ...], expected: str
    ) -> Configuration:
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise InvalidArgumentError.of(key, expected, value)
        return self._put(key, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __repr__(self) -> str:
        return str(self.to_dict())


def as_text(value: Any) -> str:
    """A value as a configuration file would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return ";".join(as_text(v) for v in value)
    if isinstance(value, dt.timedelta):
        return f"{value // dt.timedelta(milliseconds=1)} ms"
    if isinstance(value, (Time, Duration)):
        return f"{value.to_milliseconds()} ms"
    return str(value)
