"""The functions users write, under PyFlink's names.

Plain functions live in `_basic_functions`, process functions and their contexts in
`_process_functions`, those of joins in `_join_functions`, asynchronous ones in `_async_functions`,
what takes part in checkpoints in `_checkpointed_functions`; all are reachable from this module.
Functions travel to workers by pickle, so nothing here may import the driver or the runtime.
"""

from __future__ import annotations

from penstock.datastream._async_functions import (
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from penstock.datastream._basic_functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedStateStore,
    KeySelector,
    MapFunction,
    OutputSelector,
    Partitioner,
    ReduceFunction,
    ReduceFunctionWrapper,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from penstock.datastream._checkpointed_functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from penstock.datastream._join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
)
from penstock.datastream._process_functions import (
    AllWindowFunction,
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SideOutput,
    WindowFunction,
)
from penstock.datastream.timerservice import TimerService
from penstock.pyflink_names import missing_name

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ListCheckpointed",
    "MapFunction",
    "OutputSelector",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "ReduceFunctionWrapper",
    "RuntimeContext",
    "SideOutput",
    "SinkFunction",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]

__getattr__ = missing_name(__name__)
