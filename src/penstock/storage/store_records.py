"""What a store keeps for itself beside the entries: its version and the names of states."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import StateError
from penstock.storage.entries import RESERVED

# Scans end before RESERVED.
VERSION_KEY = RESERVED + b"version"
STATES_PREFIX = RESERVED + b"states/"


def encode_names(names: tuple[str, str]) -> bytes:
    return "\0".join(names).encode()


def decode_names(data: bytes) -> tuple[str, str]:
    operator, _, state = data.decode().partition("\0")
    return operator, state


def new_states(
    known: Mapping[bytes, tuple[str, str]], names: Mapping[bytes, tuple[str, str]]
) -> dict[bytes, tuple[str, str]]:
    """Those of `names` that are not known yet; two names with one id are an error."""
    for state_id, name in names.items():
        other = known.get(state_id, name)
        if other != name:
            raise StateError(
                f"the states {name} and {other} have the same 64-bit id; rename one of them"
            )
    return {state_id: name for state_id, name in names.items() if state_id not in known}
