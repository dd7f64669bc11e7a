"""Splits that a source finds while the job runs: kept before they are read, told until they are."""

from __future__ import annotations

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
        return list(self.discovery.look().get("source", ()))

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
    assert start.discovery.look() == {}


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
    loop.look_for_splits = start.discovery.look
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
