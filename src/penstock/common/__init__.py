"""The names of `pyflink.common`, each loaded from its module when it is first asked for.

Lazy, because a worker that unpickles one function must not import everything.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.common.completable_future import CompletableFuture
    from penstock.common.config_options import ConfigOption, ConfigOptions
    from penstock.common.configuration import Configuration
    from penstock.common.execution_config import ExecutionConfig
    from penstock.common.input_dependency_constraint import InputDependencyConstraint
    from penstock.common.job_client import JobClient
    from penstock.common.job_execution_result import JobExecutionResult
    from penstock.common.job_id import JobID
    from penstock.common.job_status import JobStatus
    from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
    from penstock.common.serialization import (
        ByteArraySchema,
        DeserializationSchema,
        Encoder,
        SerializationSchema,
        SimpleStringSchema,
    )
    from penstock.common.serializer import TypeSerializer
    from penstock.common.time import Duration, Instant, Time
    from penstock.common.typeinfo import TypeInformation, Types
    from penstock.common.types import Row, RowKind
    from penstock.common.watermark_strategy import (
        AssignerWithPeriodicWatermarksWrapper,
        WatermarkStrategy,
    )

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]

_NAMES_BY_MODULE = {
    "completable_future": ("CompletableFuture",),
    "config_options": ("ConfigOption", "ConfigOptions"),
    "configuration": ("Configuration",),
    "execution_config": ("ExecutionConfig",),
    "input_dependency_constraint": ("InputDependencyConstraint",),
    "job_client": ("JobClient",),
    "job_execution_result": ("JobExecutionResult",),
    "job_id": ("JobID",),
    "job_status": ("JobStatus",),
    "restart_strategy": ("RestartStrategies", "RestartStrategyConfiguration"),
    "serialization": (
        "ByteArraySchema",
        "DeserializationSchema",
        "Encoder",
        "SerializationSchema",
        "SimpleStringSchema",
    ),
    "serializer": ("TypeSerializer",),
    "time": ("Duration", "Instant", "Time"),
    "typeinfo": ("TypeInformation", "Types"),
    "types": ("Row", "RowKind"),
    "watermark_strategy": ("AssignerWithPeriodicWatermarksWrapper", "WatermarkStrategy"),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        names = importlib.import_module("penstock.pyflink_names")
        return names.find_name(__name__, name, sys._getframe(1))
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
