"""Long iterables, a part at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_parts(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Lists of so many items, the last one shorter. None is taken before its part is asked for."""
    left = iter(items)
    while part := list(islice(left, most)):
        yield part
