"""Files as a source: the lines of text files, of those that are there or also of those to come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.common.local_paths import local_path
from penstock.common.serialization import known_charset
from penstock.common.time import Duration, to_millis
from penstock.datastream.connectors._input_files import (
    UNREADABLE,
    InputFile,
    files_below,
    is_packed,
    not_text,
    open_as_utf8,
    open_bytes,
)
from penstock.datastream.connectors._text_lines import (
    LineStream,
    decoded,
    first_line_from,
    is_cut_by_bytes,
)
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
    StartFrom,
)
from penstock.errors import (
    CheckpointMismatchError,
    FileAccessError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from penstock.refusals import later, refusing

# Smaller parts of a file are not worth a subtask of their own.
_SMALLEST_RANGE = 4 << 20
_OPEN_FILES = 32
_LATER = f"{later('G3')}; until then read such files with Spark and from_spark"


class StreamFormat:
    """How records are read out of a stream of bytes, one after the other."""

    def __init__(self, j_stream_format: Any) -> None:
        raise UnsupportedFeatureError.no_java("StreamFormat(j_stream_format)")

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """A record for each line, without its end."""
        return _TextLineFormat(charset_name)


class _TextLineFormat(StreamFormat):
    def __init__(self, charset: str) -> None:
        self.charset = known_charset(charset)
        self.cut_by_bytes = is_cut_by_bytes(self.charset)


@refusing({"__init__": _LATER})
class BulkFormat:
    """A format that is read in batches of records (Parquet, Avro, ORC)."""


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
        """Accepted and without effect: parts are dealt out evenly, largest first."""
        return _Assigner()


class _Assigner(FileSplitAssignerProvider):
    def __init__(self) -> None:
        pass


class _Range(NamedTuple):
    """A part of a file: the lines that begin from `start` on and before `end`."""

    root: str
    """The path of the program's that the file was found under."""
    path: str
    start: int
    end: int | None
    """None, if it is only known when the file is read: it is packed."""


@refusing({"for_bulk_file_format": _LATER})
class FileSource(Source):
    """Lines of files. Made by `for_record_stream_format(format, *paths)…build()`."""

    gives_timestamps = False

    def __init__(
        self,
        stream_format: _TextLineFormat,
        paths: tuple[str, ...],
        interval: float | None,
        in_parts: bool,
        modified_since: int = 0,
    ) -> None:
        self._modified_since = modified_since
        self._format = stream_format
        self._paths = paths
        self._interval = interval
        self._in_parts = in_parts

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Read the files, and all below the directories, that the paths name."""
        if not isinstance(stream_format, _TextLineFormat):
            raise InvalidArgumentError.of(
                "stream_format", "a StreamFormat, as of text_line_format()", stream_format
            )
        return FileSourceBuilder(stream_format, paths)

    @property
    def boundedness(self) -> Boundedness:
        if self._interval is None:
            return Boundedness.BOUNDED
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def discovery_interval(self) -> float | None:
        return self._interval

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
        return FileSource(
            self._format, self._paths, self._interval, self._in_parts, start.at_millis
        )

    def create_reader(self, context: InitContext) -> SourceReader:
        return _LineReader(self._format)

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
        total = sum(file.size for _, file in files)
        largest = max(_SMALLEST_RANGE, -(-total // parallelism))
        ranges = [part for root, file in files for part in self._ranges(root, file, largest)]
        # Subtasks take turns, so the large ones come first, lest one subtask get them all.
        ranges.sort(key=lambda part: -((part.end or largest) - part.start))
        return [
            Split(part.path if part.start == 0 else f"{part.path}@{part.start}", part)
            for part in ranges
        ]

    def _ranges(self, root: str, file: InputFile, largest: int) -> list[_Range]:
        if is_packed(file.path) or not self._format.cut_by_bytes:
            return [_Range(root, file.path, 0, None)]
        step = largest if self._in_parts else file.size
        return [
            _Range(root, file.path, start, min(start + step, file.size))
            for start in range(0, file.size, step)
        ]


class FileSourceBuilder:
    """Settings of a `FileSource`."""

    def __init__(self, stream_format: _TextLineFormat, paths: tuple[str, ...]) -> None:
        if not paths:
            raise InvalidArgumentError("a FileSource needs at least one path, got none")
        self._format = stream_format
        self._paths = tuple(dict.fromkeys(local_path(path, "source of files") for path in paths))
        self._interval: float | None = None
        self._in_parts = True

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
        return FileSource(self._format, self._paths, self._interval, self._in_parts)


class _LineReader(SourceReader):
    """A position is where the next line begins; None, before the first of a part is known."""

    def __init__(self, stream_format: _TextLineFormat) -> None:
        self._format = stream_format
        self._charset = stream_format.charset if stream_format.cut_by_bytes else "utf-8"
        self._open: OrderedDict[str, LineStream] = OrderedDict()

    def read(self, split: Split, position: int | None, max_records: int) -> ReadResult:
        part: _Range = split.data
        try:
            stream = self._at(split.split_id, part, position)
            start = stream.position
            lines = stream.take(max_records)
        except FileAccessError:
            raise
        except UNREADABLE as error:
            raise FileAccessError.unreadable(part.path, error) from error
        if stream.finished:
            self._forget(split.split_id)
        if not lines:
            return ReadResult([], stream.position, finished=stream.finished)
        try:
            records = decoded(lines, self._charset)
        except UnicodeDecodeError as error:
            raise not_text(part.path, start + error.start, error) from None
        return ReadResult(records, stream.position, finished=stream.finished)

    def close(self) -> None:
        for split in list(self._open):
            self._forget(split)

    def _at(self, split: str, part: _Range, position: int | None) -> LineStream:
        """The file at a position: as it was left there, or opened anew."""
        found = self._open.get(split)
        if found is None or found.position != position:
            self._forget(split)
            found = self._open[split] = self._opened(part, position)
            if len(self._open) > _OPEN_FILES:
                self._forget(next(iter(self._open)))
        self._open.move_to_end(split)
        return found

    def _opened(self, part: _Range, position: int | None) -> LineStream:
        if self._format.cut_by_bytes:
            stream = open_bytes(part.path)
        else:
            stream = open_as_utf8(part.path, self._format.charset)
        if position is None:
            position = 0 if part.end is None else first_line_from(stream, part.start, part.end)
        stream.seek(position)
        return LineStream(stream, position, part.end)

    def _forget(self, split: str) -> None:
        stream = self._open.pop(split, None)
        if stream is not None:
            stream.stream.close()
