"""How many records came too late, as jobs count them."""

from __future__ import annotations

from penstock.driver.epoch_report import EpochReport


def late_records(reports: list[EpochReport], uid: str | None = None) -> int:
    """What the subtasks of an operator, or of all, have counted together: in the end, and if they
    lived that long."""
    return max(
        sum(
            value
            for operator, subtasks in report.metrics.items()
            if uid in (None, operator)
            for metrics in subtasks
            for name, value in metrics.items()
            if name.endswith(".numLateRecordsDropped")
        )
        for report in reports
    )
