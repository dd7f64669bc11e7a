"""Watermark generators, and one of them at work on a subtask or on a split of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.watermark_strategy import (
    WatermarkGenerator,
    WatermarkKind,
    WatermarkOutput,
    WatermarkStrategy,
)
from penstock.errors import InvalidArgumentError
from penstock.runtime.watermarks import ACTIVE, IDLE, MIN_TIMESTAMP, WATERMARK, Control


class BoundedGenerator(WatermarkGenerator):
    """The newest timestamp, less the bound, less a millisecond."""

    def __init__(self, bound: int) -> None:
        self.newest = MIN_TIMESTAMP + bound + 1
        self._bound = bound

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        self.newest = max(self.newest, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.newest - self._bound - 1)


class NoGenerator(WatermarkGenerator):
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None: ...

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


def make_generator(strategy: WatermarkStrategy) -> WatermarkGenerator:
    if strategy.kind in (WatermarkKind.BOUNDED, WatermarkKind.INGESTION):
        return BoundedGenerator(strategy.out_of_orderness_millis)
    if strategy.generator is None:
        return NoGenerator()
    made = strategy.generator()
    if not isinstance(made, WatermarkGenerator):
        raise InvalidArgumentError.of(
            "what the function given to for_generator returns", "a WatermarkGenerator", made
        )
    return made


class Progress(WatermarkOutput):
    """A generator, how far it has come, and whether its input is idle.

    It says what changes to `say`. An input is idle if its generator says so, or if there was
    nothing to read for as long as the strategy allows.
    """

    def __init__(self, strategy: WatermarkStrategy, say: Callable[[Control], None]) -> None:
        self._strategy = strategy
        self._say = say
        self.begin_anew()

    def begin_anew(self, watermark: int = MIN_TIMESTAMP) -> None:
        self.generator = make_generator(self._strategy)
        self.watermark = watermark
        self.idle = False
        self.seen = False
        """Whether a record has come since the last look."""
        self._silent = False
        self._last_seen: int | None = None

    # Asked by the operator

    def see(self) -> None:
        """A record has come."""
        self.seen, self._silent = True, False
        if self.idle:
            self.mark_active()

    def look(self, now: int) -> None:
        """The input was read up to what there is: has it been silent for too long?"""
        timeout = self._strategy.idle_timeout_millis
        if self.seen or self._last_seen is None:
            self._last_seen, self.seen = now, False
        elif timeout is not None and now - self._last_seen >= timeout:
            self._silent = True
            self.mark_idle()

    def periodic(self, now: int) -> None:
        """Ask the generator for a watermark."""
        if self._silent:
            return
        if self._strategy.kind is WatermarkKind.INGESTION:
            self.generator.on_event(None, now, self)
        self.generator.on_periodic_emit(self)

    # Said by the generator

    def emit_watermark(self, timestamp: int) -> None:
        if timestamp.__class__ is not int:
            raise InvalidArgumentError.of(
                "a watermark from the generator", "an int, in milliseconds", timestamp
            )
        if timestamp > self.watermark:  # one that goes back says nothing
            self.mark_active()
            self.watermark = timestamp
            self._say((WATERMARK, timestamp))

    def mark_idle(self) -> None:
        if not self.idle:
            self.idle = True
            self._say((IDLE, 0))

    def mark_active(self) -> None:
        if self.idle:
            self.idle = False
            self._say((ACTIVE, 0))

    # In the checkpoint

    def state(self, watermark: int | None = None) -> tuple[Any, ...]:
        """With another watermark than it has, if one is given."""
        at = self.watermark if watermark is None else watermark
        return (self.generator, at, self.idle, self._silent, self._last_seen)

    def restore(self, state: tuple[Any, ...]) -> None:
        before, self.watermark, self.idle, self._silent, self._last_seen = state
        self.generator = _continued(before, self.generator)


def _continued(before: WatermarkGenerator, now: WatermarkGenerator) -> WatermarkGenerator:
    """What the checkpoint's generator knew, in one that the present program made."""
    if isinstance(now, BoundedGenerator):
        if isinstance(before, BoundedGenerator):
            now.newest = max(now.newest, before.newest)
    elif type(before).__qualname__ == type(now).__qualname__:
        if not hasattr(now, "__dict__"):
            return before
        vars(now).update(vars(before))
    return now
