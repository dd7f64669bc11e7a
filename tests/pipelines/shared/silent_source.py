"""A source that gives some records and then nothing, for ever."""

from __future__ import annotations

from typing import Any

from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)


class ThenSilent(Source):
    def __init__(self, *records: Any) -> None:
        self._records = list(records)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("only", self._records, False)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _Reader()


class _Reader(SourceReader):
    def read(self, split: Split, position: bool, max_records: int) -> ReadResult:
        return ReadResult([] if position else split.data, True)
