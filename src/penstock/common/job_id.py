"""JobID: the identity of a job, which also names its checkpoint directory."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from penstock.errors import InvalidArgumentError

__all__ = ["JobID"]


@dataclass(frozen=True)
class JobID:
    """32 hexadecimal digits like Flink's, or any name the user has set."""

    value: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not self.value:
            raise InvalidArgumentError.of("a job id", "text that is not empty", self.value)

    @staticmethod
    def generate() -> JobID:
        return JobID(uuid.uuid4().hex)

    def __str__(self) -> str:
        return self.value
