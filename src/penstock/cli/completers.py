"""What a shell may complete: jobs, keys of settings. Asked at every TAB, so it must be quick."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from penstock.driver import registry

Completer = Callable[..., Iterable[str]]


def completed_by(argument: argparse.Action, completer: Completer) -> None:
    """argcomplete finds it there."""
    argument.completer = completer  # type: ignore[attr-defined]


def job_names(prefix: str, **_: Any) -> list[str]:
    """Ids rather than names: they have no spaces."""
    entries = registry.running()
    return sorted({name for entry in entries for name in (entry.job_id, entry.run_id)})


def jobs_and_directories(prefix: str, **_: Any) -> list[str]:
    parent = os.path.dirname(prefix)
    try:
        found = [entry for entry in os.scandir(parent or ".") if entry.is_dir()]
    except OSError:
        found = []
    directories = [os.path.join(parent, entry.name) + os.sep for entry in found]
    return [*job_names(prefix), *directories]


def option_keys(prefix: str, **_: Any) -> list[str]:
    return [f"{option.key}=" for option in import_module("penstock.options").all_options()]
