"""The aggregates of one field that keyed streams and windows both have."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from penstock.runtime.fields import Field

if TYPE_CHECKING:
    from penstock.datastream._data_stream import DataStream


class RollingAggregates:
    """`sum` and its like, by the field's position or name."""

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        return self._rolling("Sum", "sum", position_to_sum)

    def min(self, position_to_min: Field = 0) -> DataStream:
        """The smallest value in the field; the other fields are those of the first record."""
        return self._rolling("Min", "min", position_to_min)

    def max(self, position_to_max: Field = 0) -> DataStream:
        """The largest value in the field; the other fields are those of the first record."""
        return self._rolling("Max", "max", position_to_max)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream:
        """The record with the smallest value in the field, the earliest if there are several."""
        return self._rolling("Min By", "min_by", position_to_min_by)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream:
        """The record with the largest value in the field, the earliest if there are several."""
        return self._rolling("Max By", "max_by", position_to_max_by)

    @abstractmethod
    def _rolling(self, name: str, kind: str, field: Field) -> DataStream:
        """What becomes of the field `field` by the aggregate `kind`."""
