"""Splits at every start: fitted to the stored ones, checked; errors have the source's line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream.connectors.base import Boundedness, Source, Split
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.driver.splits import with_splits
from penstock.errors import (
    CheckpointCorruptError,
    CheckpointMismatchError,
    InvalidArgumentError,
    InvalidProgramError,
    PenstockError,
    UnpicklableError,
    UserFunctionError,
)
from penstock.runtime.operators.sources import PythonSource
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest, SourceState


class Parts(Source):
    """Splits as a function says."""

    def __init__(self, make: Callable[[int], Any], resume: Callable[..., Any] | None = None):
        self._make = make
        self._resume = resume

    boundedness = Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> Any:
        return self._make(parallelism)

    def resume(self, stored: list[Split], current: list[Split]) -> Any:
        if self._resume is None:
            return super().resume(stored, current)
        return self._resume(stored, current)

    def create_reader(self, context: Any) -> Any: ...


class Job:
    """Starts of one job in one directory."""

    def __init__(self, root: Path, plan_of: Any) -> None:
        self._layout = CheckpointLayout(str(root))
        self._plan_of = plan_of

    def start(
        self, source: Source, base: Manifest | None = None, parallelism: int = 2
    ) -> tuple[tuple[Split, ...], Manifest | None]:
        plan = self._plan_of(parallelism=parallelism, source=PythonSource(source))
        planned, base = with_splits(plan, base, LocalFileSystem(), self._layout)
        return planned.splits["source"], base


@pytest.fixture
def job(tmp_path: Path, plan_of: Any) -> Job:
    return Job(tmp_path, plan_of)


def after(**positions: bool) -> Manifest:
    """An epoch that has read these splits, to their end or not."""
    read = {split: ("position", finished) for split, finished in positions.items()}
    return Manifest("job", "Job", 3, 2, None, None, 0, {}, {"source": SourceState(read)})


def ids(splits: tuple[Split, ...]) -> list[str]:
    return [split.split_id for split in splits]


# What is read


def test_the_stored_ones_are_kept_and_new_ones_added(job):
    job.start(Parts(lambda p: [Split("a", "old"), Split("b", "old")]))
    now = Parts(lambda p: [Split("c", "new"), Split("b", "new")])
    for _ in range(2):  # what was added is stored as well
        splits, _ = job.start(now, after(a=True))
        assert splits == (Split("a", "old"), Split("b", "old"), Split("c", "new"))


def test_before_the_first_epoch_nothing_is_kept(job):
    job.start(NumberSequenceSource(1, 5))
    splits, _ = job.start(Parts(lambda p: [Split("a")]))
    assert ids(splits) == ["a"]


def test_a_source_is_cut_as_at_the_first_start(job):
    source = Parts(lambda p: [Split(str(i), p) for i in range(p)])
    job.start(source, parallelism=2)
    splits, _ = job.start(source, after(**{"0": False}), parallelism=5)
    assert splits == (Split("0", 2), Split("1", 2))


def test_what_is_given_anew_is_open_again(job):
    first = [Split("a", 1), Split("b", 1)]
    job.start(Parts(lambda p: first))
    kept_and_changed = Parts(lambda p: first, lambda stored, now: [stored[0], Split("b", 2)])
    splits, base = job.start(kept_and_changed, after(a=True, b=True))
    assert splits == (Split("a", 1), Split("b", 2))
    assert base.sources["source"].positions == {
        "a": ("position", True),
        "b": ("position", False),
    }


def test_a_collection_is_what_the_program_says_now(job):
    job.start(CollectionSource(["a", "b"]))
    splits, base = job.start(CollectionSource(["a", "c", "d"]), after(**{"0": True}))
    assert [split.data for split in splits] == [["a", "d"], ["c"]]
    assert base.sources["source"].positions == {"0": ("position", False)}
    job.start(NumberSequenceSource(1, 5))
    with pytest.raises(CheckpointMismatchError, match="a collection cannot go on from this"):
        job.start(CollectionSource(["a"]), after())


def test_a_sequence_keeps_its_bounds(job):
    job.start(NumberSequenceSource(1, 5))
    splits, _ = job.start(NumberSequenceSource(1, 5), after(), parallelism=3)
    assert splits == (Split("0", (1, 3), 1), Split("1", (3, 6), 3))
    with pytest.raises(CheckpointMismatchError) as caught:
        job.start(NumberSequenceSource(1, 8), after())
    text = str(caught.value)
    assert "conftest.py" in text  # where the plan's source is
    assert "a sequence from 1 to 8 cannot go on" in text
    assert "another penstock.job-id or a clean execution.checkpointing.dir" in text


def test_a_generator_may_grow(job):
    job.start(DataGeneratorSource(str, 5))
    _, base = job.start(DataGeneratorSource(str, 9), after(**{"0": True}))
    assert base.sources["source"].positions == {"0": ("position", False)}
    with pytest.raises(CheckpointMismatchError, match="a generator of 1 records in 1 splits"):
        job.start(DataGeneratorSource(str, 1), after())


# What is refused


def fails(job: Job, kind: type[PenstockError], make: Callable[[int], Any]) -> str:
    with pytest.raises(kind) as caught:
        job.start(Parts(make))
    assert "'Source'" in str(caught.value) or "Source (" in str(caught.value)
    assert "conftest.py" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("made", "kind", "part"),
    [
        (None, InvalidArgumentError, "create_splits() must be a list of Split, got NoneType"),
        ([1], InvalidArgumentError, "must be a Split, got int 1"),
        ([Split(7)], InvalidArgumentError, "split_id must be a str, got int 7"),
        ([Split("a"), Split("a")], InvalidProgramError, "two splits the id 'a'"),
    ],
)
def test_what_create_splits_may_return(job, made, kind, part):
    assert part in fails(job, kind, lambda p: made)


def test_errors_of_a_source_name_it(job):
    text = fails(job, UserFunctionError, lambda p: 1 / 0)
    assert "ZeroDivisionError" in text
    assert "test_splits.py" in text
    assert "SystemExit: 3" in fails(
        job, UserFunctionError, lambda p: (_ for _ in ()).throw(SystemExit(3))
    )


def test_splits_that_cannot_be_stored(job):
    assert "lock" in fails(
        job, UnpicklableError, lambda p: [Split("a", __import__("threading").Lock())]
    )


def test_damaged_splits(job, tmp_path):
    job.start(CollectionSource([1]))
    (stored,) = tmp_path.glob("sources/*/splits")
    stored.write_bytes(b"nonsense")
    with pytest.raises(CheckpointCorruptError, match="splits is damaged"):
        job.start(CollectionSource([1]), after())
