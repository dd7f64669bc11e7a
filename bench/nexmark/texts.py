"""Random text by the column, without a Python string in between."""

from __future__ import annotations

import zlib
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
    """The columns of one block. Each has a generator of its own, so that others may be left out."""

    def __init__(self, seed: list[int]) -> None:
        self._seed = seed

    def names(self, count: int) -> pa.Array:
        return self._of("names", [f"{one} {two}" for one in _FIRST for two in _LAST], count)

    def cities(self, count: int) -> pa.Array:
        return self._of("cities", _CITIES, count)

    def states(self, count: int) -> pa.Array:
        return self._of("states", _STATES, count)

    def emails(self, count: int) -> pa.Array:
        letters = _letters(self._rng("emails"), count * 17).reshape(count, 17)
        letters[:, 7] = ord("@")
        letters[:, 13:] = np.frombuffer(b".com", np.uint8)
        return _strings(letters.reshape(-1), np.full(count, 17))

    def credit_cards(self, count: int) -> pa.Array:
        rng = self._rng("credit cards")
        digits = rng.integers(ord("0"), ord("9"), (count, 19), np.uint8, endpoint=True)
        digits[:, [4, 9, 14]] = ord(" ")
        return _strings(digits.reshape(-1), np.full(count, 19))

    def channels(self, count: int) -> pa.Array:
        """Where bids come from; half of them from the hot ones."""
        return _channels()[0].take(self._chosen_channels(count))

    def urls(self, count: int) -> pa.Array:
        """The page of the channel."""
        return _channels()[1].take(self._chosen_channels(count))

    def of_length(self, column: str, count: int, shortest: int, longest: int) -> pa.Array:
        rng = self._rng(column)
        lengths = rng.integers(shortest, longest, count, endpoint=True)
        return _strings(_letters(rng, int(lengths.sum())), lengths)

    def filling(self, count: int, mean: int) -> pa.Array:
        """Brings events to their size."""
        spread = int(mean * _SPREAD)
        return self.of_length("filling", count, mean - spread, mean + spread)

    def _chosen_channels(self, count: int) -> pa.Array:
        rng = self._rng("channels")
        hot = rng.integers(0, len(_HOT_CHANNELS), count)
        other = rng.integers(len(_HOT_CHANNELS), len(_HOT_CHANNELS) + _CHANNELS, count)
        return pa.array(np.where(rng.random(count) < 0.5, hot, other))

    def _of(self, column: str, values: list[str], count: int) -> pa.Array:
        chosen = self._rng(column).integers(0, len(values), count)
        return pa.array(values).take(pa.array(chosen))

    def _rng(self, column: str) -> np.random.Generator:
        return np.random.default_rng([*self._seed, zlib.crc32(column.encode())])


@cache
def _channels() -> tuple[pa.Array, pa.Array]:
    names = [*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))]
    urls = [f"https://www.nexmark.com/{n.lower()}/item.htm?channel_id={n}" for n in names]
    return pa.array(names), pa.array(urls)


def _letters(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(ord("a"), ord("z"), count, np.uint8, endpoint=True)


def _strings(letters: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(lengths), buffers)
