"""What a job asks of whoever runs its epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.driver.epoch_loop import EpochLoop
from penstock.runtime.physical import PhysicalPlan


class Executor(Protocol):
    """Runs epochs of a plan until the input ends or it is told to stop."""

    def run(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None: ...

    def say_farewell(self, loop: EpochLoop) -> None: ...

    def drain(self, loop: EpochLoop) -> None: ...

    def close(self) -> None: ...


MakeExecutor = Callable[[PhysicalPlan, str, float], Executor]
