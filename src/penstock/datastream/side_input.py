"""Side inputs: tables beside a stream, read as a whole now and then. What users hold of them.

Reading them is the driver's business, looking things up in them the tasks'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SideInput", "SideInputTable"]


@dataclass(frozen=True)
class SideInput:
    """A table that functions can look at, made by `env.side_input`."""

    name: str
    key: Callable[[Any], Any] | None
    """Takes the key out of a row."""
    key_columns: tuple[str, ...]
    """Those of the key's columns that are known by name."""
    refresh_millis: int | None
    """How old it may become; 0 if it is read in every epoch, None if it is read once."""
    record_type: Any
    location: str
    """The user's line."""
    table: Any = field(default=None, compare=False, repr=False)
    """Driver only; never pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "table": None}


class SideInputTable(ABC):
    """The rows of a side input, as they are in the epoch at hand. They must not be changed."""

    @abstractmethod
    def get(self, key: Any) -> Any:
        """The first row of a key, None if it has none."""

    @abstractmethod
    def get_all(self, key: Any) -> Sequence[Any]:
        """All rows of a key."""

    @abstractmethod
    def rows(self) -> Sequence[Any]:
        """All rows."""
