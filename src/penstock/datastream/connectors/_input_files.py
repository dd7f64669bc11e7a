"""Files to read: those below a path, and a file as a stream of bytes whatever it is packed in."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from penstock.errors import FileAccessError

_HIDDEN = (".", "_")

_OPENERS: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".gzip": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a file raises if it is missing, forbidden or not whole."""


class InputFile(NamedTuple):
    path: str
    size: int
    modified: int
    """Milliseconds since 1970."""


def files_below(root: str) -> list[InputFile]:
    """A file, or all files of a directory and those in it; hidden ones (``.x``, ``_x``) are not
    there, nor are empty ones."""
    if not os.path.exists(root):
        raise FileAccessError.missing(root)
    if not os.path.isdir(root):
        return _non_empty(root, root)
    try:
        return sorted(_walked(root, set()))
    except PermissionError as error:
        raise FileAccessError.unreadable(error.filename, error) from None


def _walked(directory: str, above: set[str]) -> Iterator[InputFile]:
    here = os.path.realpath(directory)
    if here in above:
        return  # a link that leads back
    for entry in os.scandir(directory):
        if entry.name.startswith(_HIDDEN):
            continue
        if entry.is_dir():
            yield from _walked(entry.path, above | {here})
        else:
            yield from _non_empty(entry.path, entry)


def _non_empty(path: str, entry: Any) -> list[InputFile]:
    try:
        found = os.stat(entry)
    except FileNotFoundError:
        return []  # gone since it was listed, or a link to nowhere
    if not found.st_size:
        return []
    return [InputFile(path, found.st_size, found.st_mtime_ns // 1_000_000)]


def is_packed(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in _OPENERS


def open_bytes(path: str) -> BinaryIO:
    """The content, unpacked if the suffix says that it is packed."""
    opener = _OPENERS.get(os.path.splitext(path)[1].lower())
    # Without a buffer of its own: it is read in large blocks.
    return cast(BinaryIO, opener(path) if opener else open(path, "rb", buffering=0))


def open_as_utf8(path: str, charset: str) -> BinaryIO:
    """The content in another character set, encoded anew: positions are those in UTF-8."""
    return _Forward(_Recoded(open_bytes(path), path, charset))


class _Recoded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, path: str, charset: str) -> None:
        self._stream = stream
        self._path = path
        self._charset = charset
        self._decoder = codecs.getincrementaldecoder(charset)()
        self._ready = b""
        self._ended = False
        self._read_before = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            block = self._stream.read(len(buffer))
            self._ended = not block
            self._ready = self._decoded(block).encode()
            self._read_before += len(block)
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _decoded(self, block: bytes) -> str:
        held = len(self._decoder.getstate()[0])
        try:
            return self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            offset = self._read_before - held + error.start
            raise not_text(self._path, offset, error) from None

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Forward(io.BufferedReader):
    """Seeks by reading, once: to a position ahead."""

    def seek(self, position: int, whence: int = 0) -> int:
        left = position
        while left and (block := self.read(min(left, 1 << 20))):
            left -= len(block)
        return position


def not_text(path: str, offset: int, error: UnicodeDecodeError) -> FileAccessError:
    bad = error.object[error.start : max(error.end, error.start + 1)]
    return FileAccessError.not_text(path, error.encoding, offset, bytes(bad), error.reason)
