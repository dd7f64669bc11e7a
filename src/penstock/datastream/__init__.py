"""The DataStream API under PyFlink's names.

Names load their module when first used: unpickling a `MapFunction` on a worker must not import
the environment and, behind it, the driver.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import PlannedImportError, PlannedNameError
from penstock.pyflink_names import find_name

if TYPE_CHECKING:
    from penstock.datastream.checkpoint_config import CheckpointConfig
    from penstock.datastream.checkpoint_storage import (
        CheckpointStorage,
        CustomCheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from penstock.datastream.checkpointing_mode import CheckpointingMode
    from penstock.datastream.data_stream import (
        AllWindowedStream,
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
        DataStream,
        DataStreamSink,
        KeyedStream,
        SplitStream,
        WindowedStream,
    )
    from penstock.datastream.execution_mode import RuntimeExecutionMode
    from penstock.datastream.externalized_checkpoint_retention import (
        ExternalizedCheckpointRetention,
    )
    from penstock.datastream.functions import (
        AggregateFunction,
        AsyncFunction,
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        BroadcastProcessFunction,
        CoFlatMapFunction,
        CoMapFunction,
        CoProcessFunction,
        FilterFunction,
        FlatMapFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeySelector,
        MapFunction,
        OutputSelector,
        Partitioner,
        ProcessFunction,
        ProcessJoinFunction,
        ProcessWindowFunction,
        ReduceFunction,
        RuntimeContext,
        SinkFunction,
        SourceFunction,
        WindowFunction,
    )
    from penstock.datastream.output_tag import OutputTag
    from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from penstock.datastream.state_backend import (
        CustomStateBackend,
        EmbeddedRocksDBStateBackend,
        HashMapStateBackend,
        PredefinedOptions,
        StateBackend,
    )
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.time_characteristic import TimeCharacteristic
    from penstock.datastream.time_domain import TimeDomain
    from penstock.datastream.timerservice import TimerService
    from penstock.datastream.window import (
        CountWindow,
        GlobalWindow,
        MergingWindowAssigner,
        TimeWindow,
        Trigger,
        TriggerResult,
        Window,
        WindowAssigner,
    )

# The one list of names, by the module that defines them. Once a planned class exists, move its
# name here from `_PLANNED`, and into the two blocks that type checkers and linters read.
_MODULES = {
    "checkpoint_config": ("CheckpointConfig",),
    "checkpoint_storage": (
        "CheckpointStorage",
        "CustomCheckpointStorage",
        "FileSystemCheckpointStorage",
        "JobManagerCheckpointStorage",
    ),
    "checkpointing_mode": ("CheckpointingMode",),
    "data_stream": (
        "AllWindowedStream",
        "BroadcastConnectedStream",
        "BroadcastStream",
        "ConnectedStreams",
        "DataStream",
        "DataStreamSink",
        "KeyedStream",
        "SplitStream",
        "WindowedStream",
    ),
    "execution_mode": ("RuntimeExecutionMode",),
    "externalized_checkpoint_retention": ("ExternalizedCheckpointRetention",),
    "functions": (
        "AggregateFunction",
        "AsyncFunction",
        "AsyncRetryPredicate",
        "AsyncRetryStrategy",
        "BroadcastProcessFunction",
        "CoFlatMapFunction",
        "CoMapFunction",
        "CoProcessFunction",
        "FilterFunction",
        "FlatMapFunction",
        "KeySelector",
        "KeyedBroadcastProcessFunction",
        "KeyedCoProcessFunction",
        "KeyedProcessFunction",
        "MapFunction",
        "OutputSelector",
        "Partitioner",
        "ProcessFunction",
        "ProcessJoinFunction",
        "ProcessWindowFunction",
        "ReduceFunction",
        "RuntimeContext",
        "SinkFunction",
        "SourceFunction",
        "WindowFunction",
    ),
    "output_tag": ("OutputTag",),
    "slot_sharing_group": ("MemorySize", "SlotSharingGroup"),
    "state_backend": (
        "CustomStateBackend",
        "EmbeddedRocksDBStateBackend",
        "HashMapStateBackend",
        "PredefinedOptions",
        "StateBackend",
    ),
    "stream_execution_environment": ("StreamExecutionEnvironment",),
    "time_characteristic": ("TimeCharacteristic",),
    "time_domain": ("TimeDomain",),
    "timerservice": ("TimerService",),
    "window": (
        "CountWindow",
        "GlobalWindow",
        "MergingWindowAssigner",
        "TimeWindow",
        "Trigger",
        "TriggerResult",
        "Window",
        "WindowAssigner",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

# PyFlink has these; the rows are those of docs/features.md.
_PLANNED = {
    "AsyncDataStream": "A17",
}

__all__ = [
    "AggregateFunction",
    "AllWindowedStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointingMode",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "HashMapStateBackend",
    "JobManagerCheckpointStorage",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputSelector",
    "OutputTag",
    "Partitioner",
    "PredefinedOptions",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "SplitStream",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]


def __getattr__(name: str) -> Any:
    if name in _PLANNED:
        # `from … import name` asks for the attribute first, and would turn an AttributeError into
        # its own "cannot import name", without our explanation.
        importing = sys._getframe(1).f_code.co_name == "_handle_fromlist"
        raise (PlannedImportError if importing else PlannedNameError).of(
            f"penstock.datastream.{name}",
            f"it comes with row {_PLANNED[name]} of docs/features.md",
        )
    if name not in _HOME:
        return find_name(__name__, name, sys._getframe(1))
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
