"""A driver that dies at a named place, without taking this process along."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.storage import crash_points


class Died(BaseException):
    """As if the process had been killed."""


@contextmanager
def dying(place: str, then: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Whoever gets to this place dies, once it is so far."""

    def die(name: str, wanted: str) -> None:
        if name == wanted and then():
            raise Died(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(crash_points.AT, place)
        patch.setattr(crash_points, "_maybe_die", die)
        yield
