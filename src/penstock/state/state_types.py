"""States must be declared as they were stored: their values would be read as something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import CheckpointMismatchError


def check_types(uid: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare the recorded types of an operator's states with those that it declares."""
    for name, declared in now.items():
        stored = before.get(name)
        if stored is not None and stored != declared:
            raise CheckpointMismatchError.changed_type(uid, name, _shown(stored), _shown(declared))


def _shown(described: Mapping[str, Any]) -> str:
    return f"{described['kind']} of {described['type']}"
