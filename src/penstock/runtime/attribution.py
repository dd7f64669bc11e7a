"""Whose error it is: the operator and the user's line that something raised in a chain belongs to.

Nothing is noted per record. The frames of the traceback tell: in ours the user's callable is named
`call`, what its results go to `emit`, and an operator or writer is `self`; a loop that was put
together from several operators has both by line. The same frames tell a profile whose time it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any, NamedTuple

from penstock.errors import PenstockError, UserFunctionError, user_line
from penstock.graph.partitioning import Partitioning
from penstock.runtime.loops import LineOwners
from penstock.runtime.operators.base import OpenOperator
from penstock.runtime.physical import PhysicalEdge, PhysicalOperator

Place = tuple[str, str]
"""An operator's name and line."""


class _Owner(NamedTuple):
    place: Place
    operator: str | None
    """Its uid; None if it is an exchange."""


class Attribution:
    """Knows the operators, exchanges and writers of one task."""

    def __init__(self, head: PhysicalOperator) -> None:
        self._head = place_of(head)
        self._callables: dict[tuple[int, int], _Owner] = {}
        self._objects: dict[int, _Owner] = {}
        self._codes: dict[CodeType, str | None] = {}
        """Code of a user's function → the uid of the operator that calls it, None if several do."""

    def of_object(self, described: PhysicalOperator, at_work: Any) -> None:
        """What runs in this object's methods is the operator's."""
        self._objects[id(at_work)] = _owner(described)

    def of_callable(
        self, described: PhysicalOperator, call: Callable[..., Any], emit: Callable[..., Any]
    ) -> None:
        self._callables[id(call), id(emit)] = _owner(described)

    def of_edge(self, edge: PhysicalEdge, partitioning: Partitioning) -> None:
        """Key selectors and partitioners have a line of their own."""
        for name in ("select", "partition"):
            if (call := getattr(partitioning, name, None)) is not None:
                self._callables[id(call), 0] = _Owner((edge.name, str(edge.location)), None)

    def of_operator(self, described: PhysicalOperator, operator: OpenOperator) -> None:
        for part in operator.parts():
            self.of_object(described, part)
        operator = getattr(operator, "inner", operator)
        for process in [process for process, _ in operator.inputs] or [operator.process]:
            held = _free_variables(process)
            if "call" in held:
                key = id(held["call"]), _id(held.get("emit"))
                self._callables.setdefault(key, _owner(described))
                self._note_code(described.uid, held["call"])

    def _note_code(self, uid: str, call: Any) -> None:
        code = getattr(getattr(call, "__func__", call), "__code__", None)
        if code is not None:
            self._codes[code] = uid if self._codes.get(code, uid) == uid else None

    def explain(self, error: BaseException) -> PenstockError:
        """The error with the operator and the user's line that it belongs to."""
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            # Raised by the user's function inside one of our generators, which Python turns into
            # a RuntimeError lest it end the loop.
            error = error.__cause__
        return explained(error, self._culprit(error))

    def _culprit(self, error: BaseException) -> Place:
        found = self._head
        trace = error.__traceback__
        while trace is not None:
            owner = self._owner_in(trace.tb_frame.f_locals, trace.tb_lineno)
            found = found if owner is None else owner.place
            trace = trace.tb_next
        return found

    def operator_in(self, held: Mapping[str, Any], line: int | None) -> str | None:
        """The uid of the operator that one of our frames works for, if its locals tell."""
        owner = self._owner_in(held, line)
        return None if owner is None else owner.operator

    def exchange_in(self, held: Mapping[str, Any], line: int | None) -> bool:
        """Whether one of our frames works for an exchange: on keys, and on where they go."""
        owner = self._owner_in(held, line)
        return owner is not None and owner.operator is None

    def operator_calling(self, code: CodeType) -> str | None:
        """The uid of the only operator that calls a user's function."""
        return self._codes.get(code)

    def _owner_in(self, held: Mapping[str, Any], line: int | None) -> _Owner | None:
        owners = held.get("owners")
        if isinstance(owners, LineOwners):  # a loop over several operators
            call, emit = owners.at(line)
            return self._callables.get((id(call), _id(emit)))
        found = self._objects.get(id(held.get("self")))
        if "call" in held:
            found = self._callables.get((id(held["call"]), _id(held.get("emit"))), found)
        return found


def place_of(described: PhysicalOperator) -> Place:
    return described.name, str(described.location)


def _owner(described: PhysicalOperator) -> _Owner:
    return _Owner(place_of(described), described.uid)


def explained(error: BaseException, place: Place) -> PenstockError:
    """An error of a place: ours with the place before it, any other wrapped."""
    if isinstance(error, PenstockError):
        return located(error, *place)
    return user_error(*place, error)


def located(error: PenstockError, name: str, location: str) -> PenstockError:
    """The same error, its message opened by the operator and its line."""
    where = f"operator {name!r} ({location})"
    text = str(error)
    if where not in text:
        at = user_line(error.__traceback__)
        if at is not None and at != location:
            where = f"{where} at {at}"
        error.args = (f"{where}: {text}", *error.args[1:])
    return error


def user_error(name: str, location: str, error: BaseException) -> PenstockError:
    of_result = isinstance(error, TypeError) and user_line(error.__traceback__) is None
    if of_result and str(error).endswith("object is not iterable"):
        error.args = (f"{error}; yield the results, or return a list of them",)
    return UserFunctionError.of(f"{name} ({location})", error, location)


def _free_variables(function: Any) -> dict[str, Any]:
    cells: Iterable[Any] = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=False)}


def _id(value: Any) -> int:
    return 0 if value is None else id(value)
