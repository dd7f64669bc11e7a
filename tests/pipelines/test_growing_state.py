"""Row E8: a job whose state only grows says so, once."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

import pytest

from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.driver import housekeeping
from penstock.driver.housekeeping import GrowthWatch
from penstock.testing import ScriptedSource


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._seen.update(value)
        yield value


def _await_images(_: Any) -> None:
    """Images are made in the background, so that epochs as short as these would outrun them."""
    for thread in threading.enumerate():
        if thread.name == "penstock images":
            thread.join(60)


@pytest.mark.parametrize("grows", [True, False])
def test_state_that_only_grows(
    make_env: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    grows: bool,
) -> None:
    few = partial(GrowthWatch, images=3, entries=40)  # else a hundred thousand entries
    monkeypatch.setattr(housekeeping, "GrowthWatch", few)
    env = make_env({"penstock.state.max-segments": "1", "parallelism.default": "1"})
    env.add_epoch_listener(_await_images)
    epochs = [[10 * epoch * grows + i for i in range(10)] for epoch in range(12)]
    stream = env.from_source(ScriptedSource(epochs)).key_by(lambda n: n)
    with caplog.at_level(logging.WARNING, logger="penstock"):
        found = list(stream.process(Remember()).uid("memory").execute_and_collect())

    assert sorted(found) == sorted(n for epoch in epochs for n in epoch)
    told = [r.getMessage() for r in caplog.records if "only grows" in r.getMessage()]
    assert len(told) == (1 if grows else 0)
    if grows:
        assert "state seen of memory only grows" in told[0]
        assert "StateTtlConfig" in told[0]
