"""Jobs of one checkpoint directory: none takes another's checkpoint for its own."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import UserFunctionError

NAMES = ["a b", "a/b", "заказы", "注文", "n" * 300, None]


def test_jobs_are_told_apart_by_name(make_env: Any, tmp_path: Path) -> None:
    """Each fails half-way, so that its checkpoint stays; then each goes on from its own."""
    settings = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.type": "none",
        "penstock.source.max-records-per-epoch": "10",
    }

    def run(index: int, limit: int) -> list[int]:
        def check(n: int) -> int:
            if n % 100 >= limit:
                raise RuntimeError("half-way")
            return n

        env = make_env(settings)
        numbers = range(100 * index, 100 * index + 20 + index)
        found: list[int] = []
        results = env.from_collection(numbers).map(check).execute_and_collect(NAMES[index])
        with nullcontext() if limit == 100 else pytest.raises(UserFunctionError, match="half-way"):
            for n in results:
                found.append(n)
        return sorted(found)

    for index in range(len(NAMES)):
        assert run(index, limit=15) == list(range(100 * index, 100 * index + 10))
    assert len(list((tmp_path / "checkpoints").iterdir())) == len(NAMES)
    for index in range(len(NAMES)):
        assert run(index, limit=100) == list(range(100 * index + 10, 100 * index + 20 + index))
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_an_id_that_is_too_long(make_env: Any, tmp_path: Path) -> None:
    settings = {"execution.checkpointing.dir": str(tmp_path), "penstock.job-id": "j" * 300}
    with pytest.raises(ValueError, match=r"penstock\.job-id must be at most 200"):
        make_env(settings).from_elements(1).execute_and_collect()
