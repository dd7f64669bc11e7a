"""Records and keys of classes that workers import by name, as from a user's package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Sensor:
    building: str
    number: int


@dataclass
class Reading:
    sensor: str
    celsius: float
    tags: list[str] = field(default_factory=list)


class Point(NamedTuple):
    x: int
    y: int


class ByIdentity:
    """Hashable, but a copy is another one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"ByIdentity({self.name!r})"


class Drifting:
    """Equal by value, with a hash that changes from copy to copy."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Drifting) and other.name == self.name

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Drifting({self.name!r})"
