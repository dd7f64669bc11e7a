"""How timestamps and watermarks are to be made, as immutable descriptions.

The runtime turns a strategy into a generator per source split; nothing here has state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from penstock.common.time import Duration, Span, to_millis
from penstock.common.types import Row
from penstock.errors import InvalidArgumentError
from penstock.refusals import refusing

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "TimestampAssigner",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkKind",
    "WatermarkOutput",
    "WatermarkStrategy",
]


class TimestampAssigner(ABC):
    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The record's event time in milliseconds; `record_timestamp` is what the source gave."""


class WatermarkOutput(ABC):
    """Where a generator sends its watermarks."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None: ...

    @abstractmethod
    def mark_idle(self) -> None: ...

    @abstractmethod
    def mark_active(self) -> None: ...


class WatermarkGenerator(ABC):
    """Makes watermarks from the records it sees; one instance per source split."""

    @abstractmethod
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None: ...

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


class WatermarkKind(Enum):
    NONE = "none"
    BOUNDED = "bounded"
    INGESTION = "ingestion"
    CUSTOM = "custom"


@dataclass(frozen=True)
class WatermarkAlignment:
    """Splits of a group that run ahead by more than the drift wait for the others."""

    group: str
    max_drift_millis: int
    update_interval_millis: int


@dataclass(frozen=True)
class _FunctionAssigner(TimestampAssigner):
    function: Callable[[Any, int], int]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


@dataclass(frozen=True, eq=False)
class ColumnTime(TimestampAssigner):
    """Timestamps that Spark computes: records of its sources come with them."""

    column: Any
    """Driver only; never pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {"column": None}

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp


@dataclass(frozen=True)
class FieldTime(TimestampAssigner):
    """Timestamps that are a field of the record, with the meaning that `key_by` gives to fields."""

    field: str | int
    """A name, or a position from 0 on."""

    def __post_init__(self) -> None:
        field = self.field
        good = field != "" if isinstance(field, str) else isinstance(field, int) and field >= 0
        if not good or isinstance(field, bool):
            raise InvalidArgumentError.of("a field", "a position from 0 on or a name", field)

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """For calls by hand: the field of a dict, tuple, named tuple, list, Row or object.

        Operators do not come here. They reach fields in all the ways that `key_by` knows.
        """
        field = self.field
        if isinstance(value, tuple) and isinstance(field, str):
            field = getattr(value, "_fields", ()).index(field)
        by_item = isinstance(value, dict | tuple | list | Row)
        found: int = value[field] if by_item else getattr(value, str(field))
        return found


def is_column(value: Any) -> bool:
    """Whether it is a Column of Spark's, which need not be installed."""
    return any(
        cls.__name__ == "Column" and cls.__module__.startswith("pyspark.sql")
        for cls in type(value).__mro__
    )


def extraction(assigner: TimestampAssigner) -> Callable[[Any, int], int]:
    """What to call for a timestamp: a function that was given as such without a step between."""
    if isinstance(assigner, _FunctionAssigner):
        return assigner.function
    return assigner.extract_timestamp


@dataclass(frozen=True)
class WatermarkStrategy:
    """A kind of watermark, and how a timestamp is found; every ``with_`` gives a new one."""

    kind: WatermarkKind = WatermarkKind.NONE
    out_of_orderness_millis: int = 0
    generator: Callable[[], WatermarkGenerator] | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_millis: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps never go back: the watermark is the last one less a millisecond."""
        return WatermarkStrategy(WatermarkKind.BOUNDED)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Span) -> WatermarkStrategy:
        """A record is at most this much older than the newest before it."""
        millis = to_millis(max_out_of_orderness, "max_out_of_orderness")
        return WatermarkStrategy(WatermarkKind.BOUNDED, millis)

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Watermarks by a WatermarkGenerator class, or a function that makes one."""
        if not callable(generator):
            raise InvalidArgumentError.of(
                "for_generator", "given a WatermarkGenerator class or a function", generator
            )
        return WatermarkStrategy(WatermarkKind.CUSTOM, generator=generator)

    @staticmethod
    def for_ingestion_time() -> WatermarkStrategy:
        """Timestamps from the clock of the machine, as records enter; time goes on without any."""
        return WatermarkStrategy(WatermarkKind.INGESTION)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        return WatermarkStrategy()

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int] | str | int
    ) -> WatermarkStrategy:
        """Take timestamps from a TimestampAssigner, or a function (value, timestamp) → ms.

        Or from a field of the record that holds milliseconds, given by its name or position.
        On a stream of a Spark DataFrame, also from a Column: of milliseconds, or of timestamps.
        """
        if self.kind is WatermarkKind.INGESTION:
            raise InvalidArgumentError(
                "for_ingestion_time takes timestamps from the clock; for timestamps of the records "
                "use for_bounded_out_of_orderness or for_monotonous_timestamps"
            )
        if is_column(timestamp_assigner):
            timestamp_assigner = ColumnTime(timestamp_assigner)
        elif isinstance(timestamp_assigner, str | int) and not isinstance(timestamp_assigner, bool):
            timestamp_assigner = FieldTime(timestamp_assigner)
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if isinstance(timestamp_assigner, type) or not callable(timestamp_assigner):
                raise InvalidArgumentError.of(
                    "timestamp_assigner",
                    "an instance of TimestampAssigner, a function, or a field's name or position",
                    timestamp_assigner,
                )
            timestamp_assigner = _FunctionAssigner(timestamp_assigner)
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Span) -> WatermarkStrategy:
        """A split without records for this long no longer holds the watermark back."""
        millis = to_millis(idle_timeout, "idle_timeout")
        if millis == 0:
            raise InvalidArgumentError.of("idle_timeout", "longer than zero", idle_timeout)
        return replace(self, idle_timeout_millis=millis)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Span,
        update_interval: Span | None = None,
    ) -> WatermarkStrategy:
        """A split that is ahead of the group's slowest by more than the drift is not read.

        Looked at in every epoch, whatever the interval says.
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise InvalidArgumentError.of("watermark_group", "a non-empty str", watermark_group)
        interval = Duration.of_seconds(1) if update_interval is None else update_interval
        return replace(
            self,
            alignment=WatermarkAlignment(
                watermark_group,
                to_millis(max_allowed_watermark_drift, "max_allowed_watermark_drift"),
                to_millis(interval, "update_interval"),
            ),
        )


@refusing({"__init__": "write a WatermarkGenerator and use WatermarkStrategy.for_generator"})
class AssignerWithPeriodicWatermarksWrapper:
    """PyFlink's wrapper of a Java assigner; importable, but there is nothing to wrap."""
