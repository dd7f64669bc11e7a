"""Event time at a source: a generator for each split, of which the slowest decides."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.runtime.codec import dump
from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.operators.generators import Progress
from penstock.runtime.operators.timestamps import Stamper
from penstock.runtime.watermarks import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    WATERMARK,
    Channel,
    Control,
    Valve,
)

# Stands for the splits that have not been found yet: there is nothing to wait for.
_TO_COME = None
# Stands for the split whose turn is next, until it has begun.
_NEXT = ()


class SplitTime(Stamper):
    """The time of a subtask's splits. What follows from all of them goes to `say`.

    A split that has not been read yet holds the others back; one that is finished does not. If they
    are in order, those whose turn has not come hold nobody back: between two of them time stays
    where it is.

    With more splits to come time does not end with the last one: without one the source is idle. If
    they come when all subtasks have read theirs, that is so in epochs that begin without one: were
    all subtasks idle at the end of their last splits, time would leap to where the furthest of them
    is.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        host: OperatorHost,
        say: Callable[[Control], None],
    ) -> None:
        super().__init__(strategy, host)
        self._strategy = strategy
        self._host = host
        self._say = say
        self._waiting: set[str] = set()
        """If they are in order: those whose turn has not come."""
        self._more_to_come = self._in_turn = False
        self._splits: dict[str, Progress] | None = None
        self._last: str | None = None
        """The split with whose end this subtask had none left, in this epoch."""
        self._read: set[str] = set()
        self._valve = Valve(())

    def begin(
        self, unfinished: Iterable[str], in_order: bool, more_to_come: bool, in_turn: bool
    ) -> None:
        """These splits are there; the first time, where they were is looked up and told.

        `in_order`: each is later than those before it, and is read after them.
        `more_to_come`: at any time, or `in_turn`, when all subtasks have read theirs.
        """
        self._read.clear()
        self._more_to_come, self._in_turn = more_to_come, in_turn
        if self._splits is None:
            self._go_on(unfinished, in_order)
            return
        known = self._splits.keys() | self._waiting
        self._add([split for split in unfinished if split not in known], in_order, {})
        if self._last is not None:
            self._remove(self._last)
            self._last = None

    def _go_on(self, unfinished: Iterable[str], in_order: bool) -> None:
        watermarks, states = _merged(self._host.checkpoints.restored)
        self._splits = {}
        self._valve = Valve((), min(watermarks, default=MIN_TIMESTAMP), leap=False)
        if self._more_to_come:
            self._valve.restore(_TO_COME, MIN_TIMESTAMP, idle=True)
        self._add(list(unfinished), in_order, states)
        if self._valve.watermark > MIN_TIMESTAMP:
            self._say((WATERMARK, self._valve.watermark))
        for control in self._valve.changes():
            self._say(control)
        # Else what receivers see would depend on whether the instance that was lives on.
        self._host.unsay()

    def _add(self, found: list[str], in_order: bool, states: dict[str, Any]) -> None:
        # Another subtask may have begun one that is behind others of this one: these are next.
        begun = max((n for n, split in enumerate(found, 1) if split in states), default=0)
        at_once = begun if in_order else len(found)
        for split in found[:at_once]:
            self._start(split, states.get(split))
        self._waiting.update(found[at_once:])
        self._stay_for_next()

    def _start(self, split: str, state: Any = None) -> None:
        assert self._splits is not None
        self._waiting.discard(split)
        progress = self._splits[split] = Progress(self._strategy, partial(self._changed, split))
        if state is not None:
            progress.restore(state)
        self._valve.restore(split, progress.watermark, progress.idle)

    def _stay_for_next(self) -> None:
        if self._waiting and not self._splits:
            self._valve.restore(_NEXT, self._valve.watermark, idle=False)

    def must_wait(self, split: str) -> bool:
        """Whether a split is too far ahead of the slowest one that it is aligned with."""
        alignment = self._strategy.alignment
        if alignment is None or self._splits is None:
            return False
        if split in self._waiting and self._splits:
            return any(map(self.must_wait, self._splits))
        slowest = self._host.order().slowest.get(alignment.group)
        at = self._valve if split in self._waiting else self._splits[split]
        ahead = at.watermark
        return slowest is not None and ahead > slowest + alignment.max_drift_millis

    def turn_to(self, split: str) -> None:
        """The records that come now are this split's."""
        assert self._splits is not None
        if split in self._waiting:
            self._start(split)
            self._remove(_NEXT)
        self.progress = self._splits[split]

    def was_read(self, split: str) -> None:
        """All that there is of a split has been read, or as much as an epoch takes."""
        self._read.add(split)

    def finish_split(self, split: str) -> None:
        """There will be no more of a split."""
        assert self._splits is not None
        self.periodic()
        del self._splits[split]
        self._read.discard(split)
        self._stay_for_next()
        if self._waiting:
            self._remove(split)
        elif not self._more_to_come:
            self._changed(split, (WATERMARK, MAX_TIMESTAMP))
        elif self._in_turn and not self._splits:
            self._last = split
        else:
            self._remove(split)

    def end_epoch(self) -> None:
        if self._splits is None:
            return
        self.periodic()
        now = self._host.clock()
        for split in self._read:
            self._splits[split].look(now)

    def periodic(self) -> None:
        if self._interval > 0:
            now = self._host.clock()
            for progress in (self._splits or {}).values():
                progress.periodic(now)

    def reached(self) -> dict[str, int]:
        """The watermarks of the splits that are not idle."""
        splits = self._splits or {}
        if self._waiting and not splits:
            return {min(self._waiting): self._valve.watermark}
        return {split: found.watermark for split, found in splits.items() if not found.idle}

    def snapshot(self) -> bytes:
        splits = self._splits or {}
        states = {split: progress.state() for split, progress in splits.items()}
        return dump((self._valve.watermark, states))

    def _remove(self, split: Channel) -> None:
        for passed in self._valve.remove(split):
            self._say(passed)

    def _changed(self, split: str, control: Control) -> None:
        for passed in self._valve.receive(split, control):
            self._say(passed)


def _merged(parts: Iterable[bytes]) -> tuple[list[int], dict[str, Any]]:
    """The watermarks of the subtasks that were, and the states of all splits."""
    watermarks, states = [], {}
    for part in parts:
        watermark, splits = pickle.loads(part)
        watermarks.append(watermark)
        states.update(splits)
    return watermarks, states
