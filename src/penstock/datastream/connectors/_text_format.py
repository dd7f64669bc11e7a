"""The lines of text files as records."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from penstock.common.serialization import known_charset
from penstock.datastream.connectors._file_format import FileFormat, FilePart
from penstock.datastream.connectors._input_files import (
    UNREADABLE,
    InputFile,
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
from penstock.datastream.connectors.base import ReadResult, SourceReader, Split
from penstock.errors import FileAccessError, UnsupportedFeatureError

_OPEN_FILES = 32


class StreamFormat(FileFormat):
    """How records are read out of a stream of bytes, one after the other."""

    def __init__(self, j_stream_format: Any) -> None:
        raise UnsupportedFeatureError.no_java("StreamFormat(j_stream_format)")

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """A record for each line, without its end."""
        return TextLineFormat(charset_name)


class ByteRange(NamedTuple):
    """A part of a file: the lines that begin from `start` on and before `end`."""

    root: str
    path: str
    start: int
    end: int | None
    """None, if it is only known when the file is read: it is packed."""


class TextLineFormat(StreamFormat):
    def __init__(self, charset: str) -> None:
        self.charset = known_charset(charset)
        self.cut_by_bytes = is_cut_by_bytes(self.charset)

    def parts(self, root: str, file: InputFile, largest: int | None) -> list[tuple[FilePart, int]]:
        if is_packed(file.path) or not self.cut_by_bytes:
            return [(ByteRange(root, file.path, 0, None), largest or file.size)]
        step = file.size if largest is None else largest
        ranges = [
            ByteRange(root, file.path, start, min(start + step, file.size))
            for start in range(0, file.size, step)
        ]
        return [(part, (part.end or 0) - part.start) for part in ranges]

    def create_reader(self) -> SourceReader:
        return _LineReader(self)


class _LineReader(SourceReader):
    """A position is where the next line begins; None, before the first of a part is known."""

    def __init__(self, stream_format: TextLineFormat) -> None:
        self._format = stream_format
        self._charset = stream_format.charset if stream_format.cut_by_bytes else "utf-8"
        self._open: OrderedDict[str, LineStream] = OrderedDict()

    def read(self, split: Split, position: int | None, max_records: int) -> ReadResult:
        part: ByteRange = split.data
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

    def _at(self, split: str, part: ByteRange, position: int | None) -> LineStream:
        """The file at a position: as it was left there, or opened anew."""
        found = self._open.get(split)
        if found is None or found.position != position:
            self._forget(split)
            found = self._open[split] = self._opened(part, position)
            if len(self._open) > _OPEN_FILES:
                self._forget(next(iter(self._open)))
        self._open.move_to_end(split)
        return found

    def _opened(self, part: ByteRange, position: int | None) -> LineStream:
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
