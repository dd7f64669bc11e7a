"""What checkpoints record of a state, and how its stored values become those now declared.

A recorded type is its kind (value, list, … with or without a time to live) and the description of
its type. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.errors import CheckpointMismatchError
from penstock.state.evolution import Incompatible, conversion
from penstock.state.rewriting import Rewrite, msgpack_rewrite
from penstock.state.type_texts import type_text

WITH_TTL = " with time to live"
_LISTS = ("list", "operator list", "union list")
_MAPS = ("map", "broadcast")


def recorded_type(kind: str, type_info: TypeInformation) -> dict[str, Any]:
    return {"kind": kind, "type": type_info.describe()}


def rewrite_of_values(
    operator: str, state: str, stored: Mapping[str, Any], kind: str, type_info: TypeInformation
) -> Rewrite | None:
    """What each stored value, element or map value is to be replaced by; None if it stays.

    Stamps of a time to live are no part of it. Raises CheckpointMismatchError, which names the
    first difference, if there is no way.
    """
    declared = recorded_type(kind, type_info)
    if stored == declared:
        return None
    try:
        if _bare(stored["kind"]) != _bare(kind):
            raise Incompatible("", f"was kept as {stored['kind']} and is kept as {kind}")
        part, now = _part(_bare(kind), stored["type"], type_info)
        step = conversion(part, now)
    except Incompatible as difference:
        raise CheckpointMismatchError.changed_type(
            operator, state, shown(stored), shown(declared), str(difference)
        ) from None
    return None if step is None else msgpack_rewrite(step)


def check_same(operator: str, known: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Subtasks of an operator must declare a state alike."""
    for state, declared in others.items():
        if known.get(state, declared) != declared:
            raise CheckpointMismatchError.declared_differently(
                operator, state, shown(known[state]), shown(declared)
            )


def shown(recorded: Mapping[str, Any]) -> str:
    """A recorded type as a text."""
    return f"{recorded['kind']} of {type_text(recorded['type'])}"


def has_ttl(kind: str) -> bool:
    return kind.endswith(WITH_TTL)


def _bare(kind: str) -> str:
    return kind.removesuffix(WITH_TTL)


def _part(
    kind: str, stored: Mapping[str, Any], type_info: TypeInformation
) -> tuple[Mapping[str, Any], TypeInformation]:
    """The type of what is stored singly: of a list's elements, of a map's values."""
    declared: Any = type_info
    if kind in _LISTS:
        return stored["element"], declared.elem_type
    if kind in _MAPS:
        if stored["key"] != declared.key_type.describe():
            raise Incompatible(
                "its key", f"was {type_text(stored['key'])} and is {declared.key_type!r}"
            )
        return stored["value"], declared.value_type
    return stored, type_info
