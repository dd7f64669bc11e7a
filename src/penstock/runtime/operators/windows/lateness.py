"""Records that come when their windows are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.runtime.operators.base import OperatorHost

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing


class LateRecords:
    """Sends them to the side output, or counts and drops them."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        self._tag = windowing.late_tag
        self._emit_side = host.emit_side
        self._dropped = host.context.get_metrics_group().counter("numLateRecordsDropped")

    def handle(self, value: Any) -> None:
        if self._tag is None:
            self._dropped.inc()
        else:
            self._emit_side(self._tag, value)

    def drop(self, records: int) -> None:
        """So many of them, which exist no more as such."""
        self._dropped.inc(records)
