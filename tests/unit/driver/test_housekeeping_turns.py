"""Which of many subtasks is rewritten next."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from penstock.driver.housekeeping import Housekeeper
from penstock.storage.checkpoint_layout import CheckpointLayout, parse_state_file
from penstock.storage.compaction import CompactionPolicy
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import Manifest, SubtaskState, VertexState


class Crowd:
    """Many subtasks that all write in each epoch; a rewriting takes as long as some epochs."""

    def __init__(self, plan: Any, parallelism: int, fails: frozenset[int] = frozenset()) -> None:
        self.rewritten: list[int] = []
        self._fails = fails
        subtasks = tuple(SubtaskState("") for _ in range(parallelism))
        self._vertices = {
            v.uid: VertexState((v.uid,), parallelism, 128, subtasks) for v in plan.vertices
        }
        log: Any = SimpleNamespace(layout=CheckpointLayout("/none"), retire=lambda *_: [])
        self.keeper = Housekeeper(log, plan, 1, CompactionPolicy(max_segments=4))
        self.keeper._in_process = self._answer  # type: ignore[method-assign]

    def _answer(self, order: Any) -> Any:
        name = parse_state_file(f"{order['name']}-00000.parquet")
        assert name is not None
        self.rewritten.append(name.subtask)
        if name.subtask in self._fails:
            raise ChildProcessError("damaged")
        return {"files": [_file(order["name"], "image").to_json()]}

    def run(self, epochs: int, takes: int) -> list[int]:
        """The longest chain that each subtask has had."""
        longest = [0] * len(self._vertices["count"].subtasks)
        for epoch in range(1, epochs + 1):
            state = self._vertices["count"]
            subtasks = tuple(
                subtask.with_segment(f"t{epoch}", epoch, (_file(f"{epoch}_{i}", "segment"),))
                for i, subtask in enumerate(state.subtasks)
            )
            self._vertices["count"] = replace(state, subtasks=subtasks)
            manifest = Manifest("job", "Job", epoch, None, None, None, 0, self._vertices)
            if epoch % takes == 0:
                manifest = self.keeper.transform(manifest)
                self._vertices = dict(manifest.vertices)
                self.keeper.after_commit(manifest)
                if self.keeper._thread is not None:
                    self.keeper._thread.join()
            chains = [len(s.chain) for s in self._vertices["count"].subtasks]
            longest = [max(pair) for pair in zip(longest, chains, strict=True)]
        return longest


def _file(path: str, kind: Any) -> FileInfo:
    return FileInfo(path, 1, 100, "", kind, (("count", "s"),), (0, 1))


def test_every_subtask_has_its_turn(plan_of):
    crowd = Crowd(plan_of(parallelism=6), 6)
    longest = crowd.run(epochs=600, takes=5)
    assert set(crowd.rewritten) == set(range(6))
    # A round takes 30 epochs.
    assert max(longest) < 50


def test_one_that_fails_does_not_keep_the_others_waiting(plan_of, caplog):
    crowd = Crowd(plan_of(parallelism=4), 4, fails=frozenset({0}))
    longest = crowd.run(epochs=200, takes=5)
    assert crowd.rewritten.count(0) == 1
    assert max(longest[1:]) < 50
    assert "no image was made of subtask 0 of count (damaged)" in caplog.text
    crowd.keeper._resting["count", 0] -= 61
    crowd.run(epochs=10, takes=5)
    assert crowd.rewritten.count(0) == 2
