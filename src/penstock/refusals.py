"""How something of PyFlink's is refused: by an error that says why, and what to use instead.

Refused methods are marked, so that the page of what works can be made from the code. Which names
and modules are refused as a whole is in `penstock.pyflink_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from penstock.errors import NO_JAVA, RefusedNameError, UnsupportedFeatureError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["NO_JAVA", "JavaHandle", "later", "reason_of", "refusal", "refuses", "refusing"]


class JavaHandle:
    """The attribute by which programs reach for the Java object behind one of PyFlink's."""

    def __init__(self, hint: str) -> None:
        self._hint = hint

    def __set_name__(self, owner: type, name: str) -> None:
        self._what = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise RefusedNameError.of(self._what, f"{NO_JAVA}; {self._hint}")


def refusing(reasons: dict[str, str]) -> Callable[[C], C]:
    """Give a class methods that refuse: by the method's name, what to do instead.

    With `__init__` it is the class that cannot be used.
    """

    def add_to(cls: C) -> C:
        for method, reason in reasons.items():
            what = cls.__name__ if method == "__init__" else f"{cls.__name__}.{method}"
            setattr(cls, method, refusal(what, reason, method))
        return cls

    return add_to


def refusal(what: str, reason: str, name: str) -> Callable[..., NoReturn]:
    """A function that only refuses."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFeatureError.of(what, reason)

    refuse.__name__ = name
    refuse.__qualname__ = what
    refuse.__doc__ = f"Not supported: {reason}."
    refuse.__dict__["refused_because"] = reason
    return refuse


def refuses(reason: str) -> Callable[[F], F]:
    """Mark a method that refuses in a way of its own, such as by a future that fails."""

    def mark(method: F) -> F:
        method.__dict__["refused_because"] = reason
        return method

    return mark


def reason_of(member: Any) -> str | None:
    """Why a method is refused; None if it is not."""
    return getattr(member, "refused_because", None)


def later(row: str) -> str:
    """The reason for what comes with a row of the feature ledger."""
    return f"it comes with row {row} of docs/features.md"
