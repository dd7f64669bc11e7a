"""A value that tells when it is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _opened(path: str, number: int) -> Payload:
    Path(path).write_text("")
    return Payload(path, number)


class Payload:
    """Leaves a file behind when it is unpickled. No dataclass: as keys, those are not pickled."""

    def __init__(self, path: str, number: int = 0) -> None:
        self.path, self.number = path, number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Payload) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __reduce__(self) -> Any:
        return _opened, (self.path, self.number)
