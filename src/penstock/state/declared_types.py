"""The types of an operator's states as it declares them, against those that the base has.

Where they differ, what is stored is rewritten by the end of the epoch, or the operator refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.errors import CheckpointMismatchError
from penstock.state.backend import StateBase
from penstock.state.list_state import in_chunks
from penstock.state.live import naming_state
from penstock.state.rewriting import Lift, stamps_changed
from penstock.state.state_types import has_ttl, recorded_type, rewrite_of_values, shown


class DeclaredTypes:
    """Those of one operator in one subtask."""

    def __init__(
        self,
        base: StateBase,
        now: Callable[[], int],
        recorded: Callable[[], Mapping[str, Any]],
    ) -> None:
        """`recorded` gives the types as the base has them."""
        self._base = base
        self._now = now
        self._recorded = recorded
        self._types: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, tuple[str, TypeInformation]] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Kind and type by name, as recorded in checkpoints."""
        return dict(self._types)

    def changed(self) -> dict[str, tuple[str, TypeInformation]]:
        """Kind and type of each state under a descriptor that the epoch rewrites."""
        return dict(self._changed)

    def end_epoch(self) -> None:
        self._changed.clear()

    def add(self, name: str, kind: str, type_info: TypeInformation) -> None:
        """A state under a descriptor."""
        self._types[name] = recorded_type(kind, type_info)
        stored = self._recorded().get(name)
        if stored is None:
            return
        rewrite = rewrite_of_values(self._base.operator, name, stored, kind, type_info)
        rewrite = stamps_changed(rewrite, has_ttl(stored["kind"]), has_ttl(kind), self._now)
        if rewrite is not None:
            lifted = in_chunks(rewrite) if kind.startswith("list") else rewrite
            self._base.rewrite(name, naming_state(name, lifted))
            self._changed[name] = (kind, type_info)

    def follow(self, name: str, kind: str, type_info: TypeInformation) -> None:
        """Another subtask has changed the type of a state, which may not be declared here yet."""
        if name not in self._types:
            self.add(name, kind, type_info)

    def add_layout(
        self, name: str, kind: str, type_info: TypeInformation, held: Mapping[str, Lift] | None
    ) -> None:
        """How an operator keeps what it has under no descriptor.

        `held` names the states in whose entries there are values of the type, and how they stand
        there. None: in a way that leaves no other type than the stored one.
        """
        declared = self._types[name] = recorded_type(kind, type_info)
        stored = self._recorded().get(name)
        if stored is None or stored == declared:
            return
        operator = self._base.operator
        rewrite = rewrite_of_values(operator, name, stored, kind, type_info)
        if held is None:
            raise CheckpointMismatchError.changed_type(
                operator, name, shown(stored), shown(declared), "it is kept as pickles"
            )
        if rewrite is not None:
            for state, lift in held.items():
                self._base.rewrite(state, naming_state(name, lift(rewrite)))
