"""JobExecutionResult: what is left to say about a job that has finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.job_id import JobID

__all__ = ["JobExecutionResult"]


@dataclass(frozen=True)
class JobExecutionResult:
    job_id: JobID
    net_runtime_millis: int
    accumulators: Mapping[str, Any] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        return self.job_id

    def is_job_execution_result(self) -> bool:
        return True

    def get_net_runtime(self) -> int:
        """Milliseconds from start to end."""
        return self.net_runtime_millis

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of an accumulator, None if there is none of that name."""
        return self.accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self.accumulators)

    def __str__(self) -> str:
        return f"job {self.job_id} finished after {self.net_runtime_millis} ms"
