"""Files as a source: those that are there, or also those to come, in parts as their format says."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from penstock.common.local_paths import local_path
from penstock.common.time import Duration, to_millis
from penstock.datastream.connectors._columnar_form import ColumnarForm
from penstock.datastream.connectors._file_format import BulkFormat, FileFormat
from penstock.datastream.connectors._input_files import InputFile, files_below
from penstock.datastream.connectors._text_format import ByteRange, StreamFormat, TextLineFormat
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    Source,
    SourceReader,
    Split,
    StartFrom,
)
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)

__all__ = [
    "BulkFormat",
    "FileEnumeratorProvider",
    "FileOrder",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "StreamFormat",
]

# Smaller parts of a file are not worth a subtask of their own.
_SMALLEST_RANGE = 4 << 20
# By this name splits are stored in earlier checkpoints.
_Range = ByteRange


class FileEnumeratorProvider:
    """Which parts files are read in."""

    def __init__(self, j_file_enumerator_provider: Any) -> None:
        raise UnsupportedFeatureError.no_java("FileEnumeratorProvider(j_file_enumerator_provider)")

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files in several parts, so that several subtasks read them."""
        return _Enumerator(in_parts=True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Every file as a whole."""
        return _Enumerator(in_parts=False)


class _Enumerator(FileEnumeratorProvider):
    def __init__(self, in_parts: bool) -> None:
        self.in_parts = in_parts


class FileSplitAssignerProvider:
    """Who reads which part."""

    def __init__(self, j_file_split_assigner: Any) -> None:
        raise UnsupportedFeatureError.no_java("FileSplitAssignerProvider(j_file_split_assigner)")

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Accepted and without effect: parts are dealt out evenly."""
        return _Assigner()


class _Assigner(FileSplitAssignerProvider):
    def __init__(self) -> None:
        pass


class FileOrder(Enum):
    """By what files are ordered."""

    NAME = "name"
    """By their paths, in which numbers count as such: ``log-9`` is before ``log-10``."""
    MODIFIED = "modified"
    """By when they were last changed, those of the same millisecond by name."""


def _by_name(path: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path)]


_SORTED_BY: dict[FileOrder, Callable[[InputFile], Any]] = {
    FileOrder.NAME: lambda file: _by_name(file.path),
    FileOrder.MODIFIED: lambda file: (file.modified, _by_name(file.path)),
}


class FileSource(Source):
    """Records of files. Made by `for_record_stream_format(format, *paths)…build()`, or by
    `for_bulk_file_format` for formats like Parquet."""

    gives_timestamps = False

    def __init__(
        self,
        file_format: FileFormat,
        paths: tuple[str, ...],
        interval: float | None,
        in_parts: bool,
        modified_since: int = 0,
        order: FileOrder | None = None,
    ) -> None:
        self._modified_since = modified_since
        self._order = order
        self._format = file_format
        self._paths = paths
        self._interval = interval
        self._in_parts = in_parts

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Read the files, and all below the directories, that the paths name."""
        if not isinstance(stream_format, TextLineFormat):
            raise InvalidArgumentError.of(
                "stream_format", "a StreamFormat, as of text_line_format()", stream_format
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """The same for a format whose files are read in batches."""
        if not isinstance(bulk_format, BulkFormat):
            raise InvalidArgumentError.of(
                "bulk_format", "a BulkFormat, as a ParquetRecords()", bulk_format
            )
        return FileSourceBuilder(bulk_format, paths)

    @property
    def boundedness(self) -> Boundedness:
        if self._interval is None:
            return Boundedness.BOUNDED
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def discovery_interval(self) -> float | None:
        return self._interval

    @property
    def splits_at_once(self) -> int | None:
        return self._format.files_at_once

    def in_order(self, split: Split) -> bool:
        return self._order is not None

    def create_splits(self, parallelism: int) -> list[Split]:
        return self._splits(self._files(), parallelism)

    def discover_splits(self, known: Sequence[Split], parallelism: int) -> list[Split]:
        return self._splits(self._files(besides={split.data.path for split in known}), parallelism)

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        """What was found stays as it was found, whatever the files are like now.

        New files are read if that was asked for, or if they are below a path that is new.
        """
        gone = sorted({split.data.root for split in stored} - set(self._paths))
        if gone:
            raise CheckpointMismatchError.other_source(
                f"a FileSource of {', '.join(self._paths)}", f"keep the paths ({', '.join(gone)})"
            )
        known = {split.data.path for split in stored}
        roots = {split.data.root for split in stored}
        new = (split for split in current if split.data.path not in known)
        if self._interval is None:
            new = (split for split in new if split.data.root not in roots)
        return [*stored, *new]

    def starting_at(self, start: StartFrom) -> Source:
        """Only files that were last changed since then."""
        if start.at_millis is None:
            raise self.cannot_start(
                start, "give a time: files that were changed since are read from their beginning"
            )
        since = copy.copy(self)
        since._modified_since = start.at_millis
        return since

    def create_reader(self, context: InitContext) -> SourceReader:
        return self._format.create_reader()

    def columnar(self, columns: Sequence[int] | None = None) -> ColumnarForm | None:
        """With the types of the first file; None if its format cannot do that or there is no file
        yet. Of one that cannot be read the error comes when it is."""
        if type(self).create_reader is not FileSource.create_reader:
            return None  # Somebody else makes records.
        try:
            first = next((file.path for _, file in self._files()), None)
            found = None if first is None else self._format.in_batches(first, columns)
        except OSError:
            return None
        if found is None:
            return None
        by_columns = copy.copy(self)
        by_columns._format = found
        return ColumnarForm(by_columns, found.record, found.schema)

    def _files(self, besides: Iterable[str] = ()) -> list[tuple[str, InputFile]]:
        """With the path that each was found under; a file that is under several, once."""
        seen = set(besides)
        found = []
        for root in self._paths:
            for file in files_below(root):
                if file.path not in seen and file.modified >= self._modified_since:
                    seen.add(file.path)
                    found.append((root, file))
        return found

    def _splits(self, files: list[tuple[str, InputFile]], parallelism: int) -> list[Split]:
        if self._order is not None:
            sorted_by = _SORTED_BY[self._order]
            files = sorted(files, key=lambda found: sorted_by(found[1]))
        total = sum(file.size for _, file in files)
        largest = max(_SMALLEST_RANGE, -(-total // parallelism))
        cut = largest if self._in_parts else None
        parts = [found for root, file in files for found in self._format.parts(root, file, cut)]
        if self._order is None:
            # Subtasks take turns, so the large ones come first, lest one subtask get them all.
            parts.sort(key=lambda part: -part[1])
        return [
            Split(part.path if part.start == 0 else f"{part.path}@{part.start}", part)
            for part, _ in parts
        ]


class FileSourceBuilder:
    """Settings of a `FileSource`."""

    def __init__(self, file_format: FileFormat, paths: tuple[str, ...]) -> None:
        if not paths:
            raise InvalidArgumentError("a FileSource needs at least one path, got none")
        self._format = file_format
        self._paths = tuple(dict.fromkeys(local_path(path, "source of files") for path in paths))
        self._interval: float | None = None
        self._in_parts = True
        self._order: FileOrder | None = None

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Never end: look for new files at this interval."""
        millis = to_millis(discovery_interval, "discovery_interval")
        if millis == 0:
            raise InvalidArgumentError.of(
                "discovery_interval", "longer than zero", discovery_interval
            )
        self._interval = millis / 1000
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there when the job first starts, then end. The default."""
        self._interval = None
        return self

    def in_time_order(self, by: FileOrder = FileOrder.NAME) -> FileSourceBuilder:
        """In event time every file continues those before it.

        A subtask then reads its files in this order, one after the other, and those that wait do
        not hold time back: windows end, and their state goes, while older files than the last are
        read. If it is not so, records of a file are late by as much as it is out of order.
        """
        if not isinstance(by, FileOrder):
            raise InvalidArgumentError.of("by", "a FileOrder", by)
        self._order = by
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        if not isinstance(file_enumerator, _Enumerator):
            raise InvalidArgumentError.of(
                "file_enumerator", "a FileEnumeratorProvider", file_enumerator
            )
        self._in_parts = file_enumerator.in_parts
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        if not isinstance(split_assigner, _Assigner):
            raise InvalidArgumentError.of(
                "split_assigner", "a FileSplitAssignerProvider", split_assigner
            )
        return self

    def build(self) -> FileSource:
        return FileSource(
            self._format, self._paths, self._interval, self._in_parts, order=self._order
        )
