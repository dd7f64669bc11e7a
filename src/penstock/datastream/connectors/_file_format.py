"""What a source of files asks of a format: which parts a file has, and a reader of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.datastream.connectors._input_files import InputFile
from penstock.datastream.connectors.base import SourceReader
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.datastream._records import RecordMaker


class FilePart(Protocol):
    """A part of a file, as a split holds it."""

    @property
    def root(self) -> str:
        """The path of the program's that the file was found under."""

    @property
    def path(self) -> str: ...

    @property
    def start(self) -> int:
        """Where it begins: 0 in one part of each file."""


class FileFormat:
    """How files are cut and read. Travels to the workers by pickle."""

    files_at_once: int | None = None
    """How many parts a subtask reads at the same time, if going from one to the other costs."""

    def parts(self, root: str, file: InputFile, largest: int | None) -> list[tuple[FilePart, int]]:
        """The parts of a file, none much larger than so many bytes, each with about its bytes. A
        file is one part if it cannot be cut, or if that is not wanted."""
        raise NotImplementedError

    def create_reader(self) -> SourceReader:
        """Reads parts, made in the task that does."""
        raise NotImplementedError

    def in_batches(self, path: str, columns: Sequence[int] | None) -> ColumnarFormat | None:
        """The format that gives columns in whole batches for the same parts and positions, with
        the types that they have in this file, numbers as wide as can be; None, if there is none.
        `columns`: those of the records' that are wanted, by position; all, if None."""
        return None


class ColumnarFormat(FileFormat):
    """A format whose reader gives batches of Arrow's."""

    record: RecordMaker
    """How records are made of the columns."""
    schema: pa.Schema
    """Of every batch, but that text may be dictionary-encoded."""


class BulkFormat(FileFormat):
    """A format whose files are read in batches of records."""

    def __init__(self, j_bulk_format: Any) -> None:
        raise UnsupportedFeatureError.no_java("BulkFormat(j_bulk_format)")
