"""Contracts for sources and sinks written in Python.

A source is cut into splits; a reader then reads any split from any position, and the engine keeps
splits and positions in its checkpoints. A sink's writer works in the task, its committer on the
driver, after the epoch has been made durable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.datastream.connectors._start_from import StartFrom
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.common.typeinfo import TypeInformation
    from penstock.datastream.connectors._columnar_form import ColumnarForm

__all__ = [
    "Boundedness",
    "Committable",
    "Committer",
    "DeliveryGuarantee",
    "InitContext",
    "ReadResult",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "Split",
    "StartFrom",
    "StreamTransformer",
    "SupportsPreprocessing",
    "WriterContext",
]


class Boundedness(Enum):
    """Whether a source ends by itself."""

    BOUNDED = 0
    CONTINUOUS_UNBOUNDED = 1


class DeliveryGuarantee(Enum):
    """What a sink promises about each record when something fails."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class InitContext:
    """The task that a reader or writer is made in.

    `epoch` is the epoch being worked on and `attempt` the random token of this try at it: two
    writers of one subtask and epoch can be told apart by it. `job_directory` is where the job's
    checkpoints are: two jobs that run at the same time differ in it, whatever their ids.
    """

    job_id: str
    operator_uid: str
    subtask_index: int
    parallelism: int
    epoch: int
    attempt: str
    job_directory: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that is read in order, with a watermark of its own.

    `data` and `position` must be picklable; `position` is where reading starts.
    """

    split_id: str
    data: Any = None
    position: Any = None


@dataclass(slots=True)
class ReadResult:
    """Some records of a split and where to go on.

    `timestamps`, if given, has one entry per record, in milliseconds. `finished` says that the
    split has no more records, now or later; `paused`, that there are no more for now, so that the
    split is not asked again in this epoch (an empty result says that by itself). With `count`, the
    number of records, they may be any iterable: they are gone through at most once.
    """

    records: Any
    position: Any
    finished: bool = False
    timestamps: list[int] | None = None
    paused: bool = False
    count: int | None = None


class SourceReader(ABC):
    """Reads splits. One reader serves all splits of a subtask."""

    shape: str | None = None
    """What every record of the last result is, of a reader that makes them of columns and knows
    (`RecordMaker.shape`)."""

    @abstractmethod
    def read(self, split: Split, position: Any, max_records: int) -> ReadResult:
        """Up to `max_records` records of `split` from `position` on.

        The contract that recovery rests on: reading again from a position given by an earlier
        result yields the same records in the same order, in any process, at any later time. How
        many come in one call may differ. An empty result that is not finished means that nothing
        is there yet; do not block to wait for more. `position` belongs to the engine once
        returned: make a new one rather than change it.
        """

    def close(self) -> None:  # noqa: B027 - a hook, most readers hold nothing
        """Release connections and files."""


class Source(ABC):
    """A source written in Python. Travels to the workers by pickle."""

    gives_timestamps = True
    """Whether its reader may give some. If not, a strategy that only goes by those is no error,
    as in Flink: there is nothing for it to do."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether it ends by itself."""

    @abstractmethod
    def create_splits(self, parallelism: int) -> Sequence[Split]:
        """The splits, with distinct ids.

        Called on the driver at every start of the job. When it goes on from a checkpoint it is
        called with the parallelism of its first start, and `resume` decides what is read. A change
        of parallelism deals out the same splits anew.
        """

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        """The splits of a job that goes on from a checkpoint, on the driver.

        `stored` are those that it had, `current` what `create_splits` gives now. By default the
        stored ones are kept as they are, and current ones with new ids are added. A split keeps
        the position that is stored for its id. One that is in the result as it was stored stays
        finished if it was; another with its id is read again from its position. To refuse, raise
        an error that says what to do.
        """
        known = {split.split_id for split in stored}
        return [*stored, *(split for split in current if split.split_id not in known)]

    def current_splits(self, stored: Sequence[Split], parallelism: int) -> Sequence[Split]:
        """What `resume` gets as current: by default all that `create_splits` gives."""
        return self.create_splits(parallelism)

    @property
    def splits_at_once(self) -> int | None:
        """Among how many splits a subtask divides an epoch's records.

        None: among all it has, so that none waits for another. A source whose reader pays for
        going from one split to the other says how many; the rest wait until one has been read.
        """
        return None

    def in_order(self, split: Split) -> bool:
        """Whether the records of this split are later than those of all splits before it.

        If so, a subtask reads it after those, and until its turn has come it does not hold event
        time back. Else it does: there might be anything in it. To be the same for all splits that
        there are at a time, but for those that have been read.
        """
        return False

    def columnar(self, columns: Sequence[int] | None = None) -> ColumnarForm | None:
        """This source by whole columns, all or those at these positions, for windows of built-in
        aggregates; None if it cannot do that, or not now."""
        return None

    @property
    def discovery_interval(self) -> float | None:
        """For a source that never ends: after how many seconds to look for further splits.

        None, if all splits are known when the job starts.
        """
        return None

    def discover_splits(self, known: Sequence[Split], parallelism: int) -> Sequence[Split]:
        """The splits that are there by now and not among those `known`.

        Called on the driver between epochs. They are kept with the checkpoint before they are
        read, so each must be reported once only; after a restart `resume` gets them as stored.
        """
        return ()

    def has_more(self, known: Sequence[Split]) -> bool:
        """Whether further splits come when all these have been read to their end.

        Until it says no, neither a job nor event time ends with the last of the known ones. It
        goes by what is `known`, so that the answer is the same after a restart.
        """
        return False

    def next_splits(self, known: Sequence[Split], parallelism: int) -> Sequence[Split]:
        """If it `has_more`: the splits to go on with, since those `known` have all been read.

        Called on the driver between epochs, with the parallelism of now, and again before the next
        epoch if there are none yet. They are kept like those of `discover_splits`. In BATCH mode,
        whose one epoch reads everything, it is called before that until there is no more.
        """
        return ()

    def starting_at(self, start: StartFrom) -> Source:
        """This source, beginning to read at a position or a point in time.

        Only for a job that has no position of it yet: one that goes on from a checkpoint goes on
        where it was. So cut splits as without it, and let only their first positions differ.
        """
        raise self.cannot_start(start, "it can only be read from its beginning")

    def cannot_start(self, start: StartFrom, instead: str) -> UnsupportedFeatureError:
        """What `starting_at` raises: the source knows no such place, and what it knows instead."""
        return UnsupportedFeatureError.of(f"{type(self).__name__} from {start}", instead)

    @abstractmethod
    def create_reader(self, context: InitContext) -> SourceReader:
        """A reader, made in the task that uses it."""


class WriterContext(ABC):
    """What is known about the record being written; good during the call only."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """The record's timestamp in milliseconds, None if it has none."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event-time watermark in milliseconds."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Milliseconds since the epoch on the task's clock."""


@dataclass(frozen=True, slots=True)
class Committable:
    """One writer's prepared output of one epoch, as handed to the committer."""

    epoch: int
    subtask_index: int
    attempt: str
    data: Any


class SinkWriter(ABC):
    """Writes one subtask's records of one epoch, invisibly until they are committed."""

    @abstractmethod
    def write(self, value: Any, context: WriterContext) -> None:
        """Take a record. A sink without a committer may make it visible at once."""

    def prepare_commit(self) -> list[Any]:
        """Make what was written durable; return picklable data by which to commit it.

        The epoch ends here. The engine wraps each item in a `Committable` and stores it with the
        checkpoint, so it must suffice to commit from another process after a crash.
        """
        return []

    def abort(self) -> None:  # noqa: B027 - a hook
        """Undo what was written since the last `prepare_commit`; the epoch failed."""

    def close(self) -> None:  # noqa: B027 - a hook
        """Release connections and files."""


class Committer(ABC):
    """Makes prepared output visible. Runs on the driver."""

    @abstractmethod
    def commit(self, committables: list[Committable]) -> None:
        """Commit all. Must be idempotent: after a crash the same ones come again."""

    def close(self) -> None:  # noqa: B027 - a hook
        """Release connections and files."""


class Sink(ABC):
    """A sink written in Python. Travels to the workers by pickle."""

    @abstractmethod
    def create_writer(self, context: InitContext) -> SinkWriter:
        """A writer, made in the task that uses it."""

    def for_type(self, type_info: TypeInformation | None) -> Sink:
        """The sink for a stream of a declared type, which may matter for what it writes."""
        return self

    def create_committer(self) -> Committer | None:
        """A committer, made on the driver; None if writing alone makes output visible."""
        return None


class StreamTransformer(ABC):
    """Changes a stream on its way to a sink."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """The stream that the sink is to get, made of the one that was given to it."""


class SupportsPreprocessing(ABC):
    """A sink that wants to have its records prepared: `sink_to` asks it."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None: ...
