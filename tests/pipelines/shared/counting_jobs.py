"""Starts the counting job of `gated` as often as a test likes: from savepoints, in other versions,
several at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gated import await_true, counts, open_gate, written

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

START = "execution.state-recovery.path"
SAVEPOINTS = "execution.checkpointing.savepoint-dir"
JOB_ID = "penstock.job-id"

Build = Callable[[Any, Path, Path], None]
"""Makes the program: environment, gate, output."""


class CountingJobs:
    """Jobs below one directory, which read one gate."""

    def __init__(self, executor: str, root: Path) -> None:
        self._executor = executor
        self.root = root
        self.gate = root / "gate"
        self._running: list[Any] = []

    def open_gate(self, limit: int) -> None:
        open_gate(self.gate, limit)

    def start(
        self,
        out: str = "out",
        function: Any = None,
        *,
        start: str | Path | None = None,
        job_id: str = "job",
        build: Build | None = None,
        settings: dict[str, str] | None = None,
    ) -> Any:
        """The handle of a job that runs now."""
        configuration = Configuration()
        defaults = {
            "penstock.executor": self._executor,
            "parallelism.default": "2",
            "state.backend.local-dir": str(self.root / "stores"),
            "execution.checkpointing.dir": str(self.root / "checkpoints"),
            SAVEPOINTS: str(self.root / "savepoints"),
            JOB_ID: job_id,
            "restart-strategy.type": "none",
            "penstock.source.max-records-per-epoch": "10",
            **({} if start is None else {START: str(start)}),
        }
        for key, value in {**defaults, **(settings or {})}.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        if build is None:
            counts(env, self.gate, self.root / out, function)
        else:
            build(env, self.gate, self.root / out)
        handle = env.execute_async("counting")
        self._running.append(handle)
        return handle

    def await_output(self, out: str, lines: list[str], seconds: float = 120) -> None:
        """All of it, and nothing else."""
        await_true(lambda: self._failed() or len(written(self.root / out)) >= len(lines), seconds)
        found = written(self.root / out)
        assert found == lines, f"{found} are not {lines}"

    def _failed(self) -> bool:
        """Nobody has to wait for a job that is dead."""
        for handle in self._running:
            result = handle.get_job_execution_result()
            if result.done() and result.exception() is not None:
                raise result.exception()
        return False

    def forget(self, handle: Any) -> None:
        """It has ended, as it was meant to."""
        self._running.remove(handle)

    def forget_all(self) -> None:
        self._running.clear()

    def cancelled(self, *handles: Any) -> None:
        for handle in handles:
            self._running.remove(handle)
            handle.cancel().result(60)

    def end(self) -> None:
        for handle in self._running:
            handle.cancel().result(60)


def digests(directory: str | Path) -> dict[str, str]:
    """Every file below, by its content."""
    files = (path for path in Path(directory).rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
