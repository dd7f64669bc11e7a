"""Ready-made predicates for retry strategies."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any]) -> bool:
    """Try again after an empty result."""
    return len(result) == 0


def has_exception_predicate(error: Exception | None) -> bool:
    """Try again after any error."""
    return error is not None


def exception_type_predicate(error: Exception, expected_error_type: type[Exception]) -> bool:
    """Try again after an error of one type."""
    return isinstance(error, expected_error_type)
