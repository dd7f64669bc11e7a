"""The one place that knows how a job's checkpoint directory is laid out.

::

    <dir>/<job id>/
      lease.lock
      spark/              Structured Streaming's own checkpoint; spark-<fork>/ since the job
                          began from a savepoint
      state/              segments, images and records in loops, named by epoch, vertex, subtask
                          and token
      epochs/N.json       manifests
      plans/<hash>.plan   the plan of each start of the job, as workers read it
      sources/<name>/     what sources keep beside the checkpoint
      sources-<fork>/     the same since the job began from a savepoint
      seed-<fork>/        how far Spark's sources were read in that savepoint
      side/               tables of side inputs, as this start of the job has read them

Paths of state files are relative to the job's root, as manifests hold them; all others are full.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from penstock.errors import InvalidArgumentError

_SAFE = re.compile(r"[A-Za-z0-9_.-]+")
_NUMBERED_JSON = re.compile(r"(0|[1-9][0-9]*)\.json")
_STATE_FILE = re.compile(
    r"(?P<epoch>[0-9]+)_(?P<vertex>[A-Za-z0-9_.-]+)_(?P<subtask>[0-9]+)_(?P<token>[A-Za-z0-9]+)"
    r"\.(?P<kind>segment|image|merged|loop)(-(?P<part>[0-9]+))?\.parquet"
)
# `.new-…` and `.before` are steps on the way to another one of Spark's directories.
_FORKED = re.compile(
    r"(?:spark|sources|seed)(?:-(?P<fork>[A-Za-z0-9-]+))?(?P<step>\.new-[0-9a-f]+|\.before)?"
)


@dataclass(frozen=True)
class StateFileName:
    epoch: int
    vertex: str
    subtask: int
    token: str
    kind: str
    part: int | None


@dataclass(frozen=True)
class CheckpointLayout:
    """Path builder for one job's directory."""

    root: str
    fork: str = ""
    """Since when: set once the job has begun from a savepoint."""

    @classmethod
    def of_job(cls, directory: str, job_id: str) -> CheckpointLayout:
        return cls(os.path.join(directory, _safe("job id", job_id)))

    @property
    def spark(self) -> str:
        return os.path.join(self.root, f"spark-{self.fork}" if self.fork else "spark")

    def spark_offsets(self, batch: int) -> str:
        return os.path.join(self.spark, "offsets", str(batch))

    @property
    def seed(self) -> str:
        """What Spark's checkpoint is made of when a job begins from a savepoint."""
        return os.path.join(self.root, f"seed-{self.fork}")

    @property
    def epochs(self) -> str:
        return os.path.join(self.root, "epochs")

    def manifest(self, epoch: int) -> str:
        return os.path.join(self.epochs, f"{epoch}.json")

    def tried(self, epoch: int) -> str:
        """Marks that an epoch was begun, for jobs that must not repeat it."""
        return os.path.join(self.epochs, f"{epoch}.tried")

    def committed(self, epoch: int) -> str:
        """Marks that a job which was stopped had committed all output of its last epoch."""
        return os.path.join(self.epochs, f"{epoch}.committed")

    @property
    def plans(self) -> str:
        return os.path.join(self.root, "plans")

    @property
    def sources(self) -> str:
        return os.path.join(self.root, f"sources-{self.fork}" if self.fork else "sources")

    def source(self, name: str) -> str:
        return os.path.join(self.sources, _safe("source name", name))

    def splits(self, vertex: str) -> str:
        return os.path.join(self.source(vertex), "splits")

    def rows(self, vertex: str) -> str:
        """The rows of a batch frame that is read as a stream."""
        return os.path.join(self.source(vertex), "rows")

    def rows_written(self, vertex: str) -> str:
        """Spark's mark that they are all there."""
        return os.path.join(self.rows(vertex), "_SUCCESS")

    @property
    def side_inputs(self) -> str:
        return os.path.join(self.root, "side")

    @property
    def state(self) -> str:
        return os.path.join(self.root, STATE)

    def full(self, relative: str) -> str:
        """The full path of a file that a manifest names."""
        return os.path.join(self.root, relative)


STATE = "state"


def segment_path(epoch: int, vertex: str, subtask: int, token: str, part: int = 0) -> str:
    """Relative path of the changes of one epoch, as one attempt wrote them."""
    ending = f"segment-{part}" if part else "segment"
    return f"{STATE}/{_stem(epoch, vertex, subtask, token)}.{ending}.parquet"


def loop_path(epoch: int, vertex: str, subtask: int, token: str, part: int) -> str:
    """Relative path of records that one attempt sent back to the head of a loop."""
    return f"{STATE}/{_stem(epoch, vertex, subtask, token)}.loop-{part}.parquet"


def image_name(epoch: int, vertex: str, subtask: int, token: str) -> str:
    """Name of an image without part number and ending: `run_compaction` adds both."""
    return f"{_stem(epoch, vertex, subtask, token)}.image"


def merged_name(epoch: int, vertex: str, subtask: int, token: str) -> str:
    """The same for segments merged into one; `epoch` is the newest in it."""
    return f"{_stem(epoch, vertex, subtask, token)}.merged"


def parse_state_file(name: str) -> StateFileName | None:
    """What a name in the state directory says, None if it is not one of ours."""
    match = _STATE_FILE.fullmatch(os.path.basename(name))
    if match is None:
        return None
    part = match["part"]
    return StateFileName(
        int(match["epoch"]),
        match["vertex"],
        int(match["subtask"]),
        match["token"],
        match["kind"],
        None if part is None else int(part),
    )


def parse_epoch(name: str) -> int | None:
    """The epoch of a manifest's name, None for anything else, such as leftovers."""
    match = _NUMBERED_JSON.fullmatch(os.path.basename(name))
    return None if match is None else int(match[1])


def parse_fork(name: str) -> str | None:
    """The beginning that a directory in a job's root belongs to, empty for the first; None for
    directories that all share."""
    match = _FORKED.fullmatch(name)
    return None if match is None else match["fork"] or ""


def is_of_sources(name: str) -> bool:
    """Whether a directory in a job's root holds what sources keep, of whichever beginning."""
    return name.startswith("sources") and parse_fork(name) is not None


def is_unfinished(name: str) -> bool:
    """Whether a directory in a job's root was to become another one."""
    match = _FORKED.fullmatch(name)
    return match is not None and (match["step"] or "").startswith(".new-")


def is_inside(path: str) -> bool:
    """Whether a path that is relative to a directory stays in it."""
    return all(is_plain_name(part) for part in path.split("/"))


def is_plain_name(name: str) -> bool:
    """Whether a name is that of something in the directory where it is looked for."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _stem(epoch: int, vertex: str, subtask: int, token: str) -> str:
    if not token.isalnum():
        raise InvalidArgumentError.of("token", "made of letters and digits", token)
    # Zero-padded, so that a listing is in the order of time.
    return f"{epoch:010d}_{_safe('vertex', vertex)}_{subtask:05d}_{token}"


def _safe(what: str, name: str) -> str:
    if not _SAFE.fullmatch(name) or name in (".", ".."):
        raise InvalidArgumentError.of(what, "made of letters, digits, '_', '-' and '.'", name)
    return name
