"""Methods and parameters that only programs for Flink 1.x use: they work, with a warning.

What each means is in `penstock.pyflink_names`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.pyflink_names import OLD_KEYWORDS, OLD_METHODS

F = TypeVar("F", bound=Callable[..., Any])


def old(owner: str) -> Callable[[F], F]:
    """Mark a method of the class `owner` as one of Flink 1.x's."""

    def mark(method: F) -> F:
        name = f"{owner}.{method.__name__}"
        instead = OLD_METHODS[name]

        @functools.wraps(method)
        def warned(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(
                f"{name} is of Flink 1.x; use {instead}", DeprecationWarning, stacklevel=2
            )
            return method(*args, **kwargs)

        return warned  # type: ignore[return-value]

    return mark


def old_keywords(owner: str) -> Callable[[F], F]:
    """Let a method take its parameters by the names that they had in Flink 1.x, too."""

    def mark(method: F) -> F:
        name = f"{owner}.{method.__name__}"
        renamed = OLD_KEYWORDS[name]

        @functools.wraps(method)
        def translated(*args: Any, **kwargs: Any) -> Any:
            for before, now in renamed.items():
                if before in kwargs:
                    warnings.warn(
                        f"{name}({before}=...) is of Flink 1.x; use {now}=",
                        DeprecationWarning,
                        stacklevel=2,
                    )
                    kwargs[now] = kwargs.pop(before)
            return method(*args, **kwargs)

        return translated  # type: ignore[return-value]

    return mark
