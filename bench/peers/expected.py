"""The answers by a direct computation over whole columns: no engine, no loop over records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.functions import WARM, digest_of
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
    return Expected(len(kept), float(kept.sum()))


def keyed_count(columns: Columns) -> Expected:
    counts = np.bincount(columns.keys).astype(object)
    return Expected(len(columns.keys), int((counts * (counts + 1) // 2).sum()), int(counts.sum()))


def windows(columns: Columns, size: int, slide: int) -> Expected:
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
    return _averages(columns, key, row, begins)


def sessions(columns: Columns, gap: int) -> Expected:
    order = np.lexsort((columns.times, columns.keys))
    key, time = columns.keys[order], columns.times[order]
    # Touching counts as overlapping: a session ends `gap` after its last record, inclusive.
    apart = (key[1:] != key[:-1]) | (time[1:] - time[:-1] > gap)
    begins = np.flatnonzero(np.concatenate(([True], apart)))
    return _averages(columns, key, order, begins)


def _averages(columns: Columns, key: np.ndarray, row: np.ndarray, begins: np.ndarray) -> Expected:
    counts = np.diff(np.append(begins, len(row)))
    totals = np.add.reduceat(columns.values[row], begins)
    latest = np.maximum.reduceat(columns.times[row], begins)
    answers = zip(
        key[begins].tolist(), latest.tolist(), counts.tolist(), totals.tolist(), strict=True
    )
    names = columns.names
    checksum = sum(
        digest_of((names[key], at, (count, total / count))) for key, at, count, total in answers
    )
    return Expected(len(begins), checksum)
