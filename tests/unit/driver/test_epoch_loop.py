"""The commit side of a job, with a way to run epochs that answers at once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.connectors.base import Committable
from penstock.driver.epoch_length import EpochLength, LengthPolicy
from penstock.driver.epoch_loop import EpochLoop, RunAgain
from penstock.driver.epoch_report import EpochReport
from penstock.errors import CheckpointMismatchError, LeaseHeldError, UserFunctionError
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sources import SplitPosition
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest

ALL = tuple(CheckpointingMode)


class Driver:
    """An epoch loop on a directory, with everything around it recorded."""

    def __init__(
        self, root: Path, plan: Any, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    ) -> None:
        self.log = CheckpointLog(LocalFileSystem(), CheckpointLayout(str(root / "job")))
        self.orders: list[EpochOrder] = []
        self.committed: list[Committable] = []
        self.reports: list[EpochReport] = []
        self.manifests: list[Manifest] = []
        self.sink_fails = False
        self._plan = plan
        self.loop = EpochLoop(
            plan,
            self.log,
            self.log.newest("job"),
            mode,
            self._commit,
            self.reports.append,
            self.manifests.append,
            length=EpochLength(LengthPolicy(0.1, 5.0, 5_000_000)),
        )

    def _commit(self, prepared: dict[str, list[Committable]]) -> None:
        if self.sink_fails:
            raise OSError("the target is away")
        self.committed += prepared.get("sink", [])

    def execute(self, order: EpochOrder) -> list[Acknowledgement]:
        """Two source subtasks, two counting ones with a sink: each writes and reads a little."""
        self.orders.append(order)
        sources = [Acknowledgement(0, i, f"s{order.epoch}{i}") for i in range(2)]
        for i, a in enumerate(sources):
            position = SplitPosition(None, order.epoch)  # type: ignore[arg-type]
            a.positions = {str(i): (position.to_text(), order.epoch >= 3)}
        read = {f"0/{i}": a.token for i, a in enumerate(sources)}
        return sources + [self._counted(order, i, read) for i in range(2)]

    def _counted(self, order: EpochOrder, subtask: int, read: dict[str, str]) -> Acknowledgement:
        a = Acknowledgement(1, subtask, f"c{order.epoch}{subtask}", dict(read))
        path = f"state/{order.epoch:010d}_count_{subtask:05d}_{a.token}.segment.parquet"
        a.files = [FileInfo(path, 1, 10, "00", "segment", (("count", "n"),), (0, 127)).to_json()]
        a.state_types = {"count": {"n": {"kind": "value", "type": {"kind": "long"}}}}
        a.committables = {"sink": [pickle.dumps(f"e{order.epoch}-{subtask}")]}
        return a

    @property
    def data(self) -> list[tuple[int, str]]:
        return [(c.epoch, c.data) for c in self.committed]


@pytest.fixture
def driver_of(tmp_path: Path, plan_of) -> Callable[..., Driver]:
    def make(mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE) -> Driver:
        return Driver(tmp_path, plan_of(parallelism=2), mode)

    return make


@pytest.fixture
def driver(driver_of) -> Driver:
    return driver_of()


def run(driver: Driver, batch: int | None = None, offsets: str | None = None, **more: Any) -> None:
    driver.loop.close(driver.execute, batch, offsets, **more)


BOTH = lambda epoch: [(epoch, f"e{epoch}-0"), (epoch, f"e{epoch}-1")]


# Epoch after epoch


def test_epochs_build_on_each_other(driver):
    run(driver)
    run(driver)
    first, second = driver.orders
    assert (first.epoch, first.base, first.tokens, first.positions) == (0, None, {}, {})
    assert (second.epoch, second.base) == (1, 0)
    assert second.tokens == {"0/0": "s00", "0/1": "s01", "1/0": "c00", "1/1": "c01"}
    assert SplitPosition.position_from(second.positions["source|1"][0]) == 0
    assert driver.data == BOTH(0) + BOTH(1)
    assert [r.epoch for r in driver.reports] == [0, 1]
    assert driver.manifests == [driver.log.read(0), driver.log.read(1)]
    chain = driver.loop.base.vertices["count"].subtasks[1].chain
    assert [link.version for link in chain] == ["0-c01", "1-c11"]


def test_another_driver_goes_on(driver_of):
    run(driver_of())
    later = driver_of()
    run(later)
    assert later.orders[0].epoch == 1
    assert later.orders[0].tokens["1/0"] == "c00"


def test_sources_are_exhausted_when_all_splits_are_finished(driver):
    assert not driver.loop.exhausted()
    for _ in range(3):
        run(driver)
    assert not driver.loop.exhausted()
    run(driver)
    assert driver.loop.exhausted()


def test_the_last_epoch_ends_the_job(driver_of):
    driver = driver_of()
    run(driver)
    assert not driver.loop.ended
    run(driver, final=True)
    assert driver.orders[-1].final
    assert driver.loop.ended
    assert driver_of().loop.ended
    assert not driver.loop.base.drained


def test_a_job_that_was_drained_can_go_on(driver):
    run(driver)
    driver.loop.draining = True
    run(driver, final=True)
    assert driver.loop.base.drained
    driver.loop.draining = False
    driver.loop.reopen()
    assert driver.log.newest("job") == driver.loop.base
    assert not driver.loop.ended
    assert not driver.loop.base.drained
    run(driver)
    before, after = driver.orders[-2:]
    assert (after.epoch, after.base) == (3, 2)
    assert after.attempt != before.attempt  # whoever made the last epoch is made anew


def test_failures_are_counted(driver):
    driver.loop.failed()
    driver.loop.failed()
    run(driver)
    run(driver)
    assert [order.attempt for order in driver.orders] == [2, 2]


def test_after_a_failure_an_epoch_reads_less(driver):
    """It may have failed because it took too long, and would again."""
    run(driver)
    driver.loop.failed()
    run(driver)
    first, second = (order.most_records for order in driver.orders)
    assert second == first // 4


# What is not committed


def spoiled(driver: Driver, spoil: Callable[[list[Acknowledgement]], Any]) -> Any:
    def execute(order: EpochOrder) -> list[Acknowledgement]:
        found = driver.execute(order)
        spoil(found)
        return found

    return execute


def test_an_error_is_raised_and_nothing_written(driver):
    error = UserFunctionError.of("map (job.py:3)", ValueError("bad"))

    def spoil(found):
        found[2].error = pickle.dumps(error)

    with pytest.raises(UserFunctionError, match="bad"):
        driver.loop.close(spoiled(driver, spoil))
    assert driver.log.epochs() == []
    assert driver.committed == []
    run(driver)
    assert driver.orders[-1].epoch == 0


def test_mixed_attempts_are_run_again_from_the_same_base(driver, caplog):
    run(driver)
    with pytest.raises(RunAgain):
        driver.loop.close(spoiled(driver, lambda found: found[3].consumed.update({"0/0": "x"})))
    assert "read another attempt" in caplog.text
    run(driver)
    assert [(o.epoch, o.base) for o in driver.orders] == [(0, None), (1, 0), (1, 0)]
    assert driver.data == BOTH(0) + BOTH(1)


def test_edges_stay_frozen(driver):
    with pytest.raises(RunAgain):
        driver.loop.close(spoiled(driver, lambda found: found[0].freeze_edges.append(0)))
    run(driver)
    run(driver)
    assert [order.frozen_edges for order in driver.orders] == [(), (0,), (0,)]


def test_types_that_differ_between_subtasks_are_refused_before_the_commit(driver):
    run(driver)

    def spoil(found):
        found[2].state_types["count"]["n"] = {"kind": "value", "type": {"kind": "string"}}

    with pytest.raises(CheckpointMismatchError, match="'n'"):
        driver.loop.close(spoiled(driver, spoil))
    assert driver.log.epochs() == [0]


# Batches of Spark's


def test_a_batch_that_is_in_the_base_repeats_only_the_sinks(driver_of):
    run(driver_of(), 0, "offsets 0")
    later = driver_of()
    run(later, 0, "offsets 0")
    assert later.orders == []
    assert later.data == BOTH(0)
    assert later.log.epochs() == [0]
    run(later, 1, "offsets 1")
    assert later.orders[0].epoch == 1


def test_a_batch_that_was_not_committed_is_run(driver_of):
    run(driver_of(), 0, "offsets 0")
    later = driver_of()
    run(later, 1, "offsets 1")
    assert later.data == BOTH(1)


@pytest.mark.parametrize(("batch", "offsets"), [(1, "other"), (1, None), (0, "offsets 1")])
def test_a_batch_with_other_offsets_is_refused(driver, batch, offsets):
    run(driver, 0, "offsets 0")
    run(driver, 1, "offsets 1")
    with pytest.raises(CheckpointMismatchError, match=rf"batch {batch}"):
        run(driver, batch, offsets)
    assert len(driver.orders) == 2
    assert driver.log.epochs() == [0, 1]


def test_epochs_without_a_batch_leave_the_batch_known(driver_of):
    driver = driver_of()
    run(driver, 4, "offsets 4")
    run(driver)
    later = driver_of()
    run(later, 4, "offsets 4")
    assert later.orders == []
    run(later, 5, "offsets 5")
    assert later.orders[0].epoch == 2


# Two at once


def test_the_second_commit_of_an_epoch_is_refused(driver_of):
    one, other = driver_of(), driver_of()
    run(one)
    with pytest.raises(LeaseHeldError, match="committed this epoch first"):
        run(other)
    assert other.committed == []
    assert other.loop.base is None
    assert one.log.newest("job") == one.loop.base


# Sinks


@pytest.mark.parametrize("mode", ALL)
def test_recovery_repeats_the_last_commit(driver_of, mode):
    run(driver_of(mode))
    later = driver_of(mode)
    later.loop.recover()
    assert later.data == ([] if mode is CheckpointingMode.AT_MOST_ONCE else BOTH(0))


def test_a_sink_that_fails_after_the_manifest_gets_another_try(driver):
    driver.sink_fails = True
    with pytest.raises(Exception, match="the target is away"):
        run(driver)
    assert driver.log.epochs() == [0]
    driver.sink_fails = False
    driver.loop.recover()
    assert driver.data == BOTH(0)
    run(driver)
    assert driver.orders[-1].epoch == 1


def test_at_least_once_a_failing_sink_keeps_the_epoch_back(driver_of):
    driver = driver_of(CheckpointingMode.AT_LEAST_ONCE)
    driver.sink_fails = True
    with pytest.raises(Exception, match="the target is away"):
        run(driver)
    assert driver.log.epochs() == []


def test_committables_keep_the_epoch_they_were_made_in(driver_of, plan_of, tmp_path):
    run(driver_of())
    log = CheckpointLog(LocalFileSystem(), CheckpointLayout(str(tmp_path / "job")))
    adopted = Manifest(**{**vars(log.read(0)), "epoch": 1, "base": 0})
    log.commit(adopted)
    later = driver_of()
    later.loop.recover()
    assert later.data == BOTH(0)


# At most once


def test_at_most_once_an_epoch_that_was_tried_is_dropped(driver_of):
    mode = CheckpointingMode.AT_MOST_ONCE
    driver = driver_of(mode)
    run(driver)
    with pytest.raises(RuntimeError, match="died"):
        driver.loop.close(_dying(driver))
    run(driver)
    run(driver)
    assert [(o.epoch, o.skip) for o in driver.orders] == [
        (0, False),
        (1, False),
        (1, True),
        (2, False),
    ]


def test_at_most_once_also_by_another_driver(driver_of):
    mode = CheckpointingMode.AT_MOST_ONCE
    with pytest.raises(RuntimeError, match="died"):
        driver_of(mode).loop.close(_dying(driver_of(mode)))
    later = driver_of(mode)
    run(later)
    assert [o.skip for o in later.orders] == [True]


def test_at_most_once_does_not_need_a_second_run_to_learn_what_to_freeze(driver_of):
    """Records that can change are no failure, so nothing may be dropped for them."""
    driver = driver_of(CheckpointingMode.AT_MOST_ONCE)
    run(driver)
    assert driver.orders[0].frozen_edges == (0,)


@pytest.mark.parametrize("mode", ALL[:2])
def test_the_other_modes_drop_nothing(driver_of, mode):
    driver = driver_of(mode)
    with pytest.raises(RuntimeError, match="died"):
        driver.loop.close(_dying(driver))
    run(driver)
    assert not any(o.skip for o in driver.orders)


def _dying(driver: Driver) -> Any:
    def execute(order: EpochOrder) -> list[Acknowledgement]:
        driver.orders.append(order)
        raise RuntimeError("died")

    return execute
