"""What a program is started with: settings that stand below its own, and what becomes of its jobs.

`penstock run` says it by `launched`; a program that is started by itself or by spark-submit may
have the variable PENSTOCK_CONF, which names a file. Settings are text until an option reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock import options
from penstock.common.configuration import Configuration
from penstock.config_file import read_config_file
from penstock.errors import InvalidArgumentError

CONFIG_VARIABLE = "PENSTOCK_CONF"


@dataclass(frozen=True)
class Launch:
    """How a program is started."""

    config_file: str | None = None
    """Instead of the one that PENSTOCK_CONF names."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """By key; they stand above the file's."""
    instead_of_running: Callable[[Any], None] | None = None
    """Is given each job that the program would run; it must raise."""
    profiled: Callable[[str, str], None] | None = None
    """Is told where the profile of a job is that has ended, and its table."""


_current = Launch()


def current() -> Launch:
    return _current


@contextmanager
def launched(launch: Launch) -> Iterator[None]:
    """Within, programs are started that way."""
    global _current
    before, _current = _current, launch
    try:
        yield
    finally:
        _current = before


def base_configuration() -> Configuration:
    """What environments begin with: the file, and above it the settings of the launch."""
    launch = current()
    path = launch.config_file or os.environ.get(CONFIG_VARIABLE)
    configuration = Configuration()
    if path:
        configuration.add_all(checked(read_config_file(path), path))
    return override(configuration, checked(launch.settings, "the command line"))


def checked(settings: Mapping[str, str], origin: str) -> Configuration:
    """Settings under their present keys, of values that their options can read.

    Keys that are not ours are kept, for functions to read as job parameters, unless one looks like
    one of ours that was mistyped.
    """
    configuration = Configuration()
    options.reject_unknown_keys(settings)
    for key, value in settings.items():
        option = options.find_option(key)
        if option is None:
            if near := options.mistyped(key):
                raise InvalidArgumentError.unknown_option(key, near)
            configuration.set_string(key, value)
            continue
        try:
            option.parse(value)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error} (in {origin})") from None
        configuration.set_string(option.key, value)
    return configuration


def override(below: Configuration, above: Configuration) -> Configuration:
    """Put settings over others, whichever of an option's names each of them goes by."""
    for key in above.key_set():
        option = options.find_option(key)
        if option is not None:
            for name in (option.key, *option.fallback_keys):
                below.remove_config(name)
    return below.add_all(above)
