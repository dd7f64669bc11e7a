"""How much memory a process has, and what is kept in it."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from penstock.state.memory import memory_in_use

_MANY = 64 << 20


def test_memory_that_is_written_to_counts() -> None:
    before = memory_in_use()
    held = bytearray(b"x") * _MANY
    assert memory_in_use() - before > 0.9 * _MANY
    del held
    assert memory_in_use() - before < 0.1 * _MANY


def test_without_proc_the_peak_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: Any, *args: Any) -> Any:
        raise FileNotFoundError(path)

    now = memory_in_use()
    monkeypatch.setattr(builtins, "open", absent)
    assert memory_in_use() >= now
