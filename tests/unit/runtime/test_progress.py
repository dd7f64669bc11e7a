"""A generator at work: what it says, when its input is idle, what the checkpoint keeps of it."""

from __future__ import annotations

import pickle
from typing import Any

from penstock.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from penstock.runtime.operators.generators import Progress
from penstock.runtime.watermarks import ACTIVE, IDLE, MIN_TIMESTAMP, WATERMARK


class Counts(WatermarkGenerator):
    """Its watermark is how many records it has seen, times a step."""

    def __init__(self, step: int = 1) -> None:
        self.seen = 0
        self.step = step

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        self.seen += 1

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(self.seen * self.step)


def progress(strategy: WatermarkStrategy) -> tuple[Progress, list[Any]]:
    said: list[Any] = []
    return Progress(strategy, said.append), said


def test_an_input_is_idle_after_so_much_silence_and_active_with_its_next_record() -> None:
    found, said = progress(WatermarkStrategy.for_monotonous_timestamps().with_idleness(100))
    found.see()
    found.look(1000)
    found.look(1099)
    assert said == []
    found.look(1100)
    found.look(1200)
    assert said == [(IDLE, 0)]
    found.see()
    assert said == [(IDLE, 0), (ACTIVE, 0)]
    found.look(1300)
    found.look(1399)
    assert not found.idle


def test_an_input_without_any_record_counts_from_the_first_look() -> None:
    found, said = progress(WatermarkStrategy.for_monotonous_timestamps().with_idleness(100))
    found.look(500)
    found.look(599)
    assert said == []
    found.look(600)
    assert said == [(IDLE, 0)]


def test_without_idleness_an_input_may_be_silent_for_ever() -> None:
    found, said = progress(WatermarkStrategy.for_monotonous_timestamps())
    found.look(0)
    found.look(10**12)
    assert said == []


def test_a_generator_is_not_asked_while_its_input_is_silent() -> None:
    strategy = WatermarkStrategy.for_generator(Counts).with_idleness(100)
    found, said = progress(strategy)
    found.look(0)
    found.look(100)
    found.generator.on_event(None, 0, found)
    found.periodic(100)
    assert said == [(IDLE, 0)]
    found.see()
    found.periodic(200)
    assert said[1:] == [(ACTIVE, 0), (WATERMARK, 1)]


def test_ingestion_time_goes_on_by_the_clock_and_never_back() -> None:
    found, said = progress(WatermarkStrategy.for_ingestion_time())
    for now in (500, 700, 600):
        found.periodic(now)
    assert said == [(WATERMARK, 499), (WATERMARK, 699)]


def again(found: Progress, strategy: WatermarkStrategy) -> Progress:
    """Restored from what the checkpoint keeps, in a program with this strategy."""
    restored, _ = progress(strategy)
    restored.restore(pickle.loads(pickle.dumps(found.state())))
    return restored


def test_a_checkpoint_keeps_where_it_was() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(10).with_idleness(100)
    found, _ = progress(strategy)
    found.see()
    found.generator.on_event(None, 111, found)
    found.periodic(0)
    found.look(1000)
    found.look(1100)
    restored = again(found, strategy)
    assert (restored.watermark, restored.idle) == (100, True)
    restored.periodic(1200)
    assert restored.watermark == 100


def test_a_program_may_go_on_with_another_bound() -> None:
    found, _ = progress(WatermarkStrategy.for_bounded_out_of_orderness(10))
    found.generator.on_event(None, 111, found)
    found.periodic(0)
    restored = again(found, WatermarkStrategy.for_bounded_out_of_orderness(50))
    restored.periodic(0)
    assert restored.watermark == 100
    restored.generator.on_event(None, 200, restored)
    restored.periodic(0)
    assert restored.watermark == 149


def test_a_program_may_go_on_with_another_kind() -> None:
    found, _ = progress(WatermarkStrategy.for_bounded_out_of_orderness(0))
    found.generator.on_event(None, 4, found)
    found.periodic(0)
    restored = again(found, WatermarkStrategy.for_generator(Counts))
    for _ in range(5):
        restored.generator.on_event(None, 0, restored)
    restored.periodic(0)
    assert restored.watermark == 5


def test_a_generators_fields_are_kept_its_code_is_the_programs() -> None:
    strategy = WatermarkStrategy.for_generator(Counts)
    found, _ = progress(strategy)
    found.generator.on_event(None, 0, found)
    restored = again(found, strategy)
    restored.generator.on_event(None, 0, restored)
    restored.periodic(0)
    assert restored.watermark == 2
    assert found.watermark == MIN_TIMESTAMP
