"""Random text by the column, without a Python string in between."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

_FIRST = ["Ada", "Ben", "Cleo", "Dora", "Emil", "Finn", "Greta", "Hugo", "Iris", "Jonas", "Kim"]
_LAST = ["Abel", "Brandt", "Costa", "Dahl", "Egger", "Fuchs", "Grau", "Holm", "Ibsen"]
_CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond"]
_CITIES += ["Seattle", "Kent", "Cheyenne"]
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
_CHANNELS = 10_000
_SPREAD = 0.2
"""How far the length of a filling may be from its mean."""


class Texts:
    """Draws from one generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def names(self, count: int) -> pa.Array:
        return self._of([f"{first} {last}" for first in _FIRST for last in _LAST], count)

    def cities(self, count: int) -> pa.Array:
        return self._of(_CITIES, count)

    def states(self, count: int) -> pa.Array:
        return self._of(_STATES, count)

    def emails(self, count: int) -> pa.Array:
        letters = self._letters(count * 17).reshape(count, 17)
        letters[:, 7] = ord("@")
        letters[:, 13:] = np.frombuffer(b".com", np.uint8)
        return _strings(letters.reshape(-1), np.full(count, 17))

    def credit_cards(self, count: int) -> pa.Array:
        digits = self._rng.integers(ord("0"), ord("9"), (count, 19), np.uint8, endpoint=True)
        digits[:, [4, 9, 14]] = ord(" ")
        return _strings(digits.reshape(-1), np.full(count, 19))

    def channels(self, count: int) -> tuple[pa.Array, pa.Array]:
        """Where bids come from, and the page they come from; half of them from the hot ones."""
        names, urls = _channels()
        hot = self._rng.integers(0, len(_HOT_CHANNELS), count)
        other = self._rng.integers(len(_HOT_CHANNELS), len(names), count)
        chosen = pa.array(np.where(self._rng.random(count) < 0.5, hot, other))
        return names.take(chosen), urls.take(chosen)

    def of_length(self, count: int, shortest: int, longest: int) -> pa.Array:
        lengths = self._rng.integers(shortest, longest, count, endpoint=True)
        return _strings(self._letters(int(lengths.sum())), lengths)

    def filling(self, count: int, mean: int) -> pa.Array:
        """Brings events to their size."""
        spread = int(mean * _SPREAD)
        return self.of_length(count, mean - spread, mean + spread)

    def _of(self, values: list[str], count: int) -> pa.Array:
        return pa.array(values).take(pa.array(self._rng.integers(0, len(values), count)))

    def _letters(self, count: int) -> np.ndarray:
        return self._rng.integers(ord("a"), ord("z"), count, np.uint8, endpoint=True)


@cache
def _channels() -> tuple[pa.Array, pa.Array]:
    names = [*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))]
    urls = [f"https://www.nexmark.com/{n.lower()}/item.htm?channel_id={n}" for n in names]
    return pa.array(names), pa.array(urls)


def _strings(letters: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(lengths), buffers)
