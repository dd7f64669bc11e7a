"""Splits that a source finds while the job runs: kept before they are read, told until they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.connectors.base import Boundedness, Source, Split
from penstock.driver.epoch_loop import EpochLoop
from penstock.driver.splits import SplitDiscovery, with_splits
from penstock.errors import InvalidProgramError, UserFunctionError
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sources import PythonSource, found_splits
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest, SourceState


class Folder(Source):
    """A split for each name in a list that grows."""

    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    discovery_interval: Any = 0.0

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(name, parallelism) for name in self.names]

    def discover_splits(self, known: Any, parallelism: int) -> list[Split]:
        seen = {split.split_id for split in known}
        return [split for split in self.create_splits(parallelism) if split.split_id not in seen]

    def create_reader(self, context: Any) -> Any: ...


class Start:
    """A start of the job, and what it asks its source for."""

    def __init__(self, root: Path, plan_of: Any, source: Source, base: Manifest | None = None):
        layout, fs = CheckpointLayout(str(root)), LocalFileSystem()
        plan = plan_of(parallelism=2, source=PythonSource(source))
        self.plan, self.base = with_splits(plan, base, fs, layout)
        self.discovery = SplitDiscovery(self.plan, fs, layout)
        self.log = CheckpointLog(fs, layout)

    def found(self) -> list[str]:
        return list(self.discovery.look(lambda uid, split: False).get("source", ()))

    def planned(self) -> list[str]:
        return [split.split_id for split in self.plan.splits["source"]]


def read_to_the_end(*splits: str) -> Manifest:
    positions = dict.fromkeys(splits, ("gAVLAS4=", True))
    return Manifest("job", "Job", 3, 2, None, None, 0, {}, {"source": SourceState(positions)})


def test_what_is_found_is_stored(tmp_path: Path, plan_of: Any) -> None:
    names = ["a"]
    first = Start(tmp_path, plan_of, Folder(names))
    assert first.found() == []
    names += ["b", "c"]
    assert first.found() == ["b", "c"]
    names += ["d"]
    assert first.found() == ["b", "c", "d"]
    second = Start(tmp_path, plan_of, Folder(["e"]), read_to_the_end("a"))
    assert second.planned() == ["a", "b", "c", "d", "e"]
    assert second.found() == []


def test_looked_for_at_its_interval(
    tmp_path: Path, plan_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    source = Folder(names)
    source.discovery_interval = 10
    now = 100.0
    monkeypatch.setattr("penstock.driver.splits.time.monotonic", lambda: now)
    start = Start(tmp_path, plan_of, source)
    names.append("a")
    now = 109.0
    assert start.found() == []
    now = 110.0
    assert start.found() == ["a"]


def test_a_source_that_ends_is_not_asked(tmp_path: Path, plan_of: Any) -> None:
    names: list[str] = []
    source = Folder(names)
    source.boundedness = Boundedness.BOUNDED
    start = Start(tmp_path, plan_of, source)
    names.append("a")
    assert start.discovery.look(lambda uid, split: True) == {}


def test_the_order_tells_what_is_to_be_read(tmp_path: Path, plan_of: Any) -> None:
    """Each with its number, by which subtasks take turns; no more once it is read."""
    names = ["a"]
    start = Start(tmp_path, plan_of, Folder(names))
    orders: list[EpochOrder] = []

    def execute(order: EpochOrder) -> list[Acknowledgement]:
        orders.append(order)
        done = Acknowledgement(0, 0, "s0")
        if order.epoch == 1:
            done.positions = {"a": ("gAVLAS4=", True), "b": ("gAVLAS4=", True)}
        return [done, *(Acknowledgement(v, i, f"{v}{i}") for v, i in [(0, 1), (1, 0), (1, 1)])]

    mode = CheckpointingMode.EXACTLY_ONCE
    loop = EpochLoop(start.plan, start.log, None, mode, lambda _: None, lambda _: None)
    for more in ([], ["b", "c"], []):
        names += more
        loop.close(execute)
    told = [found_splits("source", order) for order in orders]
    assert told == [[], [(1, Split("b", 2)), (2, Split("c", 2))], [(2, Split("c", 2))]]
    assert list(orders[2].positions) == ["source|a"]
    assert EpochOrder.from_text(orders[1].to_text()).splits == {
        "source": [list(told) for told in orders[1].splits["source"]]
    }
    assert not loop.exhausted()


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda: [Split("a")], InvalidProgramError, r"discover_splits\(\) gives two splits"),
        (lambda: 1 // 0, UserFunctionError, "ZeroDivisionError"),
    ],
)
def test_bad_answers(
    tmp_path: Path, plan_of: Any, answer: Any, error: type[Exception], message: str
) -> None:
    source = Folder(["a"])
    start = Start(tmp_path, plan_of, source)
    source.discover_splits = lambda known, parallelism: answer()  # type: ignore[method-assign]
    with pytest.raises(error, match=message):
        start.found()


# Splits that come when those before have been read


class Pages(Source):
    """One split after the other."""

    boundedness = Boundedness.BOUNDED

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("0", parallelism)]

    def has_more(self, known: Any) -> bool:
        return len(known) < self.pages

    def next_splits(self, known: Any, parallelism: int) -> list[Split]:
        return [Split(str(len(known)), parallelism)]

    def create_reader(self, context: Any) -> Any: ...


def test_the_job_does_not_end_before_the_last(tmp_path: Path, plan_of: Any) -> None:
    start = Start(tmp_path, plan_of, Pages(3))
    orders: list[EpochOrder] = []
    ends = []

    def execute(order: EpochOrder) -> list[Acknowledgement]:
        """The first epoch does not come to the end of its split, the others do."""
        orders.append(order)
        done = Acknowledgement(0, 0, "s0")
        if order.epoch > 0:
            done.positions = {str(order.epoch - 1): ("gAVLAS4=", True)}
        return [done, *(Acknowledgement(v, i, f"{v}{i}") for v, i in [(0, 1), (1, 0), (1, 1)])]

    mode = CheckpointingMode.EXACTLY_ONCE
    loop = EpochLoop(start.plan, start.log, None, mode, lambda _: None, lambda _: None)
    while not loop.exhausted() and len(orders) < 9:
        loop.close(execute)
        ends.append(loop.exhausted())
    assert ends == [False, False, False, True]
    told = [[split.split_id for _, split in found_splits("source", order)] for order in orders]
    assert told == [[], [], ["1"], ["2"]]
    assert [order.more_to_come for order in orders] == [("source",)] * 3 + [()]
    assert EpochOrder.from_text(orders[0].to_text()).more_to_come == ("source",)
    assert loop._order(None, final=False).ended == (0,)

    again = Start(tmp_path, plan_of, Pages(3), read_to_the_end("0", "1"))
    assert again.planned() == ["0", "1", "2"]
    assert again.discovery.more_to_come() == ()


def test_next_splits_are_made_for_the_parallelism_of_now(tmp_path: Path, plan_of: Any) -> None:
    layout, fs = CheckpointLayout(str(tmp_path)), LocalFileSystem()
    with_splits(plan_of(parallelism=2, source=PythonSource(Pages(2))), None, fs, layout)
    wider = plan_of(parallelism=3, source=PythonSource(Pages(2)))
    plan, _ = with_splits(wider, read_to_the_end("0"), fs, layout)
    found = SplitDiscovery(plan, fs, layout).look(lambda uid, split: True)
    ((number, text),) = found["source"].values()
    told = EpochOrder(0, None, 0, splits={"source": [(number, text)]})
    assert found_splits("source", told) == [(1, Split("1", 3))]


def test_in_batch_mode_all_are_there_at_once(tmp_path: Path, plan_of: Any) -> None:
    layout, fs = CheckpointLayout(str(tmp_path)), LocalFileSystem()
    plan = plan_of(parallelism=2, source=PythonSource(Pages(3)))
    plan = replace(plan, settings=replace(plan.settings, batch=True))
    planned, _ = with_splits(plan, None, fs, layout)
    assert [split.split_id for split in planned.splits["source"]] == ["0", "1", "2"]

    class Later(Pages):
        def next_splits(self, known: Any, parallelism: int) -> list[Split]:
            return []

    plan = replace(plan_of(source=PythonSource(Later(2))), settings=plan.settings)
    with pytest.raises(InvalidProgramError, match="all splits must be there at the start"):
        with_splits(plan, None, fs, layout)
