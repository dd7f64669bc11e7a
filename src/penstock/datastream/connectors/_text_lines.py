"""Lines of text out of bytes: in bulk, from any offset, and each in one of several byte ranges.

A line ends with "\\n", "\\r\\n" or "\\r", as for Java's readers. A range has the lines that begin
in it, so ranges that cover a file together have every line once, wherever they are cut.
"""

from __future__ import annotations

import re
from typing import BinaryIO

BLOCK = 1 << 18

_LINE_END = re.compile(rb"[\r\n]")


def is_cut_by_bytes(charset: str) -> bool:
    """Whether line ends are the same bytes as in ASCII. In UTF-16 they are not, for example."""
    try:
        return "a\r\n".encode(charset).endswith(b"a\r\n")
    except UnicodeEncodeError:
        return False


def first_line_from(stream: BinaryIO, start: int, end: int) -> int:
    """Where the first line begins that begins at `start` or behind; `end` if it is not before."""
    if start == 0:
        return 0
    at = start - 1  # if a line ends with this byte, one begins at `start`
    stream.seek(at)
    while at < end and (block := stream.read(BLOCK)):
        found = _LINE_END.search(block)
        if found is not None:
            following = block[found.end() : found.end() + 1] or stream.read(1)
            both = found[0] == b"\r" and following == b"\n"
            return min(at + found.end() + both, end)
        at += len(block)
    return end


class LineStream:
    """The lines of a stream that begin before `end`, from a position where one begins."""

    def __init__(self, stream: BinaryIO, position: int, end: int | None) -> None:
        self.stream = stream
        self.position = position
        """Where the next line begins."""
        self._end = end
        self._lines: list[bytes] = []
        self._taken = 0
        self._begun: list[bytes] = []
        """Pieces of the line behind `_lines`."""
        self._ended = False

    @property
    def finished(self) -> bool:
        if self._end is not None and self.position >= self._end:
            return True
        return self._ended and self._taken == len(self._lines)

    def take(self, most: int) -> list[bytes]:
        """The next lines, with their ends; none at the end only."""
        if self.finished:
            return []
        if self._taken == len(self._lines):
            self._read_on()
        lines = self._lines[self._taken : self._taken + most]
        after = self.position + sum(map(len, lines))
        if self._end is not None and after > self._end:
            lines, after = self._before_the_end(lines)
        self._taken += len(lines)
        self.position = after
        return lines

    def _before_the_end(self, lines: list[bytes]) -> tuple[list[bytes], int]:
        assert self._end is not None
        at = self.position
        for count, line in enumerate(lines):
            if at >= self._end:
                return lines[:count], at
            at += len(line)
        return lines, at

    def _read_on(self) -> None:
        """Read until there is a whole line, or the end."""
        self._lines, self._taken = [], 0
        while not self._lines and not self._ended:
            block = self.stream.read(BLOCK)
            self._ended = not block
            self._begun.append(block)
            if block and _LINE_END.search(block) is None:
                continue
            lines = b"".join(self._begun).splitlines(keepends=True)
            self._begun = []
            if not self._ended and not lines[-1].endswith(b"\n"):
                # Not whole yet; and behind "\r" there may be a "\n" that belongs to it.
                self._begun.append(lines.pop())
            self._lines = lines


def decoded(lines: list[bytes], charset: str) -> list[str]:
    """The lines as text, without their ends."""
    text = b"".join(lines).decode(charset)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = text.split("\n")
    if not found[-1]:
        found.pop()  # the last line had an end
    return found
