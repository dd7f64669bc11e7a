"""Configuration files: YAML as Flink's `config.yaml`, with nested or flat keys, or both.

Every value is read as text, and options know what they mean; so `1:30` and `no` are what they look
like, and not what YAML 1.1 takes them for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from penstock import options
from penstock.errors import InvalidArgumentError

_UNSET = ("", "~", "null")
# Lists of all other options are separated as Flink has it, by semicolons.
_WITH_COMMAS = frozenset(
    ("python.files", "python.archives", "penstock.state-recovery.reset-sources")
)


def read_config_file(path: str) -> dict[str, str]:
    """The settings of a file by their full keys."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = yaml.compose(file, yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"cannot read the configuration file {path}: {error}") from None
    except yaml.YAMLError as error:
        raise InvalidArgumentError(f"{path} is not YAML: {error}") from None
    settings: dict[str, str] = {}
    for key, value, line in _settings(path, "", tree):
        if key in settings:
            raise InvalidArgumentError(f"{key} is set twice in {path}, again in line {line}")
        settings[key] = value
    return settings


def _settings(path: str, prefix: str, tree: Any) -> Iterator[tuple[str, str, int]]:
    """Key, value and line of each setting below a node of the file."""
    if tree is None or tree.value in _UNSET:
        return
    if not isinstance(tree, yaml.MappingNode):
        raise InvalidArgumentError(
            f"{path} must hold keys and values, as in `parallelism.default: 4`"
        )
    for name, value in tree.value:
        key, line = f"{prefix}{name.value}", name.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            yield from _settings(path, f"{key}.", value)
        elif isinstance(value, yaml.SequenceNode):
            yield key, _separator(key).join(str(item.value) for item in value.value), line
        elif value.value not in _UNSET:
            yield key, value.value, line


def _separator(key: str) -> str:
    option = options.find_option(key)
    return "," if (key if option is None else option.key) in _WITH_COMMAS else ";"
