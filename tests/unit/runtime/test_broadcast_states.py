"""How functions get at broadcast states: by any descriptor that is equal to a declared one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream.state import MapStateDescriptor
from penstock.errors import InvalidKeyError, StateError
from penstock.runtime.operators.broadcast import BroadcastStates
from penstock.state.broadcast_state import LiveBroadcastState


def rules(name: str = "rules") -> MapStateDescriptor:
    return MapStateDescriptor(name, Types.PICKLED_BYTE_ARRAY(), Types.LONG())


@pytest.fixture
def states() -> BroadcastStates:
    kept: Any = SimpleNamespace(get_broadcast_state=lambda d: LiveBroadcastState(d, ()))
    return BroadcastStates(kept, (rules(), rules("others")))


def test_descriptors_are_compared_once(
    states: BroadcastStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = rules()
    first = states.of(asked)
    monkeypatch.setattr(MapStateDescriptor, "__eq__", None)
    assert states.of(asked) is first


def test_each_descriptor_gets_its_state_however_many_there_are(states: BroadcastStates) -> None:
    first, second = states.of(rules()), states.of(rules("others"))
    assert first is not second
    for _ in range(1000):
        assert states.of(rules()) is first
        assert states.of(rules("others")) is second
    assert len(states._asked) <= 100


def test_others_are_refused_every_time(states: BroadcastStates) -> None:
    unknown = rules("unknown")
    for _ in range(2):
        with pytest.raises(StateError, match="no broadcast state"):
            states.of(unknown)


def test_keys_that_are_there_and_keys_that_cannot_be(states: BroadcastStates) -> None:
    state = states.of(rules())
    state.put("a", 1)
    assert (state.get("a"), state.get("b"), state.view.get("a")) == (1, None, 1)
    with pytest.raises(InvalidKeyError, match="hashable"):
        state.get(["a"])
