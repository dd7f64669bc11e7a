"""A leftover of Flink's batch scheduler, kept so that imports work."""

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """When a task may start: as soon as any of its inputs is there, or all of them."""

    ANY = 0
    ALL = 1
