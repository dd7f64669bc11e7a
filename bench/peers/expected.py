"""The answers by a direct computation over whole columns: no engine, no loop over records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.peers.functions import (
    NEAR_MILLIS,
    SIZE_MILLIS,
    WARM,
    class_of,
    digest_of,
    threshold_of,
)
from bench.peers.inputs import name_of


@dataclass(frozen=True)
class Expected:
    """What a contender's answers must add up to."""

    outputs: int
    checksum: float
    final: float | None = None
    """The same over only the last answer of each key, for contenders that merge updates."""

    def matches(self, outputs: int | None, checksum: float | None, final: float | None) -> bool:
        if final is not None:
            return final == self.final
        return (outputs, checksum) == (self.outputs, self.checksum)


def table_of(directory: Path, files: int) -> pa.Table:
    paths = [directory / name_of(number) for number in range(files)]
    return pa.concat_tables([pq.read_table(path) for path in paths])


class Columns:
    """The readings after the map at the head of every program."""

    def __init__(self, table: pa.Table) -> None:
        coded = table["id"].combine_chunks().dictionary_encode()
        self.names: list[str] = coded.dictionary.to_pylist()
        self.keys = coded.indices.to_numpy()
        self.times = table["ts"].to_numpy()
        self.values = table["temp"].to_numpy() * 2 + 0.25


def map_filter(columns: Columns) -> Expected:
    kept = columns.values[columns.values >= 2 * WARM]
    return Expected(len(kept), float(kept.sum()), float(kept.sum()))


def keyed_count(columns: Columns) -> Expected:
    counts = np.bincount(columns.keys).astype(object)
    return Expected(len(columns.keys), int((counts * (counts + 1) // 2).sum()), int(counts.sum()))


def word_count(table: pa.Table) -> Expected:
    words = pc.list_flatten(pc.split_pattern(table["line"].combine_chunks(), " "))
    counts = pc.value_counts(words).field("counts").to_numpy().astype(object)
    return Expected(len(words), int((counts * (counts + 1) // 2).sum()), int(counts.sum()))


def timers(columns: Columns) -> Expected:
    """One per key and window: how many records it had."""
    ends = columns.times - columns.times % SIZE_MILLIS + SIZE_MILLIS
    both = np.stack([columns.keys.astype(np.int64), ends])
    groups, counts = np.unique(both, axis=1, return_counts=True)
    names = columns.names
    answers = zip(groups[0].tolist(), groups[1].tolist(), counts.tolist(), strict=True)
    return Expected(len(counts), sum(digest_of((names[key], end, n)) for key, end, n in answers))


def broadcast_rules(columns: Columns) -> Expected:
    limits = np.array([threshold_of(class_of(name)) for name in columns.names])
    kept = columns.values[columns.values >= limits[columns.keys]]
    return Expected(len(kept), float(kept.sum()))


def interval_join(left: Columns, right: Columns) -> Expected:
    """Right ones by key and time; for each left one those from its own time on."""
    numbers = {name: number for number, name in enumerate(right.names)}
    keys = np.array([numbers.get(name, -1) for name in left.names])[left.keys]
    order = np.lexsort((right.times, right.keys))
    # Key and time as one number, so that a range of both is a range of it.
    span = 1 << 42
    places = right.keys[order].astype(np.int64) * span + right.times[order]
    sums = np.concatenate(([0.0], np.cumsum(right.values[order])))
    begins = np.searchsorted(places, keys * span + left.times, "left")
    ends = np.searchsorted(places, keys * span + left.times + NEAR_MILLIS, "right")
    counts = ends - begins
    checksum = float((counts * left.values).sum() + (sums[ends] - sums[begins]).sum())
    return Expected(int(counts.sum()), checksum)


def windows(
    columns: Columns, size: int, slide: int, weight_of: Callable[[Any], float] = digest_of
) -> Expected:
    """Each record in every window of `size` that begins at a multiple of `slide` around it."""
    keys, starts, rows = [], [], []
    every = np.arange(len(columns.keys))
    newest = columns.times - columns.times % slide
    for back in range(0, size, slide):
        start = newest - back
        inside = columns.times < start + size
        keys.append(columns.keys[inside])
        starts.append(start[inside])
        rows.append(every[inside])
    key, start, row = np.concatenate(keys), np.concatenate(starts), np.concatenate(rows)
    order = np.lexsort((start, key))
    key, start, row = key[order], start[order], row[order]
    begins = np.flatnonzero(
        np.concatenate(([True], (key[1:] != key[:-1]) | (start[1:] != start[:-1])))
    )
    return _averages(columns, key, row, begins, weight_of)


def sessions(columns: Columns, gap: int) -> Expected:
    order = np.lexsort((columns.times, columns.keys))
    key, time = columns.keys[order], columns.times[order]
    # Touching counts as overlapping: a session ends `gap` after its last record, inclusive.
    apart = (key[1:] != key[:-1]) | (time[1:] - time[:-1] > gap)
    begins = np.flatnonzero(np.concatenate(([True], apart)))
    return _averages(columns, key, order, begins, digest_of)


def _averages(
    columns: Columns,
    key: np.ndarray,
    row: np.ndarray,
    begins: np.ndarray,
    weight_of: Callable[[Any], float],
) -> Expected:
    counts = np.diff(np.append(begins, len(row)))
    totals = np.add.reduceat(columns.values[row], begins)
    latest = np.maximum.reduceat(columns.times[row], begins)
    answers = zip(
        key[begins].tolist(), latest.tolist(), counts.tolist(), totals.tolist(), strict=True
    )
    names = columns.names
    checksum = sum(
        weight_of((names[key], at, (count, total / count))) for key, at, count, total in answers
    )
    return Expected(len(begins), checksum)
