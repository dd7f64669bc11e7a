"""What PyFlink has under a name that is elsewhere here, or nowhere: the one place that says so.

A module asks `missing_name` for the names that it does not have; the finder in `penstock` asks
`refuse_module` for modules. This module must not import what it speaks of.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from opcode import opmap
from types import FrameType
from typing import Any

from penstock.errors import RefusedImportError, RefusedNameError
from penstock.refusals import NO_JAVA, later

_SPARK_SOURCE = "env.from_spark(spark.readStream.format({0!r}).option(...).load())"
_SPARK_SINK = "stream.to_spark().write.format({0!r}).option(...).save()"
_OWN_SINK = "a Sink in Python and sink_to for one that never ends"
_WRAPS_JAVA = "PyFlink's is a wrapper of a Java connector, which only Flink can run; use "
_TABLES = (
    "tables are Spark's here; stream.to_spark() gives a DataFrame for Spark SQL, and "
    "env.from_spark(spark.sql(...)) a stream of a query"
)


def _with_spark(format: str) -> str:
    """The reason for a connector that Spark has, too."""
    return (
        f"{_WRAPS_JAVA}Spark's: {_SPARK_SOURCE.format(format)} to read, "
        f"{_SPARK_SINK.format(format)} to write a bounded stream, {_OWN_SINK}"
    )


ABSENT_MODULES = {
    "penstock.common.io": "an InputFormat is a Java class; write a Source in Python, or read with "
    "env.from_spark(spark.read.format(...).load(...))",
    "penstock.common.utils": NO_JAVA,
    "penstock.datastream.connectors.cassandra": f"{_WRAPS_JAVA}Spark's: "
    + _SPARK_SINK.format("org.apache.spark.sql.cassandra")
    + f" to write a bounded stream, {_OWN_SINK}",
    "penstock.datastream.connectors.dynamic_kafka": "it asks a Java service which clusters and "
    "topics there are; the Kafka source for one cluster comes with row G1 of docs/features.md",
    "penstock.datastream.connectors.elasticsearch": f"{_WRAPS_JAVA}Spark's: "
    + _SPARK_SINK.format("es")
    + f" to write a bounded stream, {_OWN_SINK}",
    "penstock.datastream.connectors.jdbc": later("G4"),
    "penstock.datastream.connectors.kafka": "the source comes with row G1 of docs/features.md, the "
    "sink with row G2; until then " + _SPARK_SOURCE.format("kafka"),
    "penstock.datastream.connectors.kinesis": _with_spark("aws-kinesis"),
    "penstock.datastream.connectors.pulsar": _with_spark("pulsar"),
    "penstock.datastream.connectors.rabbitmq": f"{_WRAPS_JAVA}a Source or Sink in Python over a "
    "client such as pika, with from_source and sink_to",
    "penstock.datastream.formats.orc": "its writer is a Java class; use "
    "stream.to_spark().write.orc(path), or env.from_spark(spark.read.orc(path)) to read",
    "penstock.dataset": "Flink has given the DataSet API up; use penstock.datastream in "
    "RuntimeExecutionMode.BATCH",
    "penstock.fn_execution": "it is the inside of PyFlink's workers; functions run in Spark's here",
    "penstock.java_gateway": NO_JAVA,
    "penstock.ml": "use Spark's MLlib (pyspark.ml) on stream.to_spark()",
    "penstock.shell": "start python and call StreamExecutionEnvironment.get_execution_environment",
    "penstock.table": _TABLES,
    "penstock.util": NO_JAVA,
}
"""By the module's name, why it is not there and what to use. A module that exists wins."""

_INTERNAL = "it is internal to PyFlink, which does not export it; "
_INSIDE_WINDOWS = _INTERNAL + "window functions are passed as they are, to apply or process"
_CSV_FILES = later("G3")
_AVRO_ROWS = dict.fromkeys(
    ("AvroRowDeserializationSchema", "AvroRowSerializationSchema"), later("G3")
)

ABSENT_NAMES = {
    "penstock.common": _AVRO_ROWS,
    "penstock.common.serialization": {
        **_AVRO_ROWS,
        "RowDataBulkWriterFactory": _INTERNAL + "subclass BulkWriterFactory",
    },
    "penstock.datastream.formats.avro": {
        **_AVRO_ROWS,
        **dict.fromkeys(("AvroBulkWriters", "AvroInputFormat"), later("G3")),
    },
    "penstock.datastream.formats.csv": dict.fromkeys(
        ("CsvBulkWriters", "CsvReaderFormat", "CsvSchema", "CsvSchemaBuilder"), _CSV_FILES
    ),
    "penstock.datastream.formats.parquet": dict.fromkeys(
        ("AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters"), later("G3")
    ),
    "penstock.datastream.functions": {
        "FunctionWrapper": _INTERNAL + "pass a callable or a function class",
        "JavaFunctionWrapper": NO_JAVA,
        "NullByteKeySelector": _INTERNAL + "use window_all for one window over all keys",
        **dict.fromkeys(
            (
                "InternalIterableAllWindowFunction",
                "InternalIterableProcessAllWindowFunction",
                "InternalIterableProcessWindowFunction",
                "InternalIterableWindowFunction",
                "InternalProcessAllWindowContext",
                "InternalProcessWindowContext",
                "InternalSingleValueAllWindowFunction",
                "InternalSingleValueProcessAllWindowFunction",
                "InternalSingleValueProcessWindowFunction",
                "InternalSingleValueWindowFunction",
                "InternalWindowFunction",
                "PassThroughAllWindowFunction",
                "PassThroughWindowFunction",
            ),
            _INSIDE_WINDOWS,
        ),
    },
    "penstock.datastream.utils": dict.fromkeys(
        (
            "convert_to_python_obj",
            "create_hadoop_configuration",
            "create_java_properties",
            "pickled_bytes_to_python_obj",
        ),
        NO_JAVA,
    ),
    "penstock.datastream.window": {
        "Min": _INTERNAL + "pass min to a ReducingStateDescriptor",
        "WindowOperationDescriptor": _INTERNAL + "call window(...) on a stream",
        "long_to_int_with_bit_mixing": _INTERNAL + "use hash(window)",
        "mod_inverse": _INTERNAL + "use pow(x, -1, modulus)",
    },
}
"""By module and name, the same."""

_FILES = "penstock.datastream.connectors.file_system"
_KAFKA = "penstock.datastream.connectors.kafka"
_CSV, _JSON = "penstock.datastream.formats.csv", "penstock.datastream.formats.json"
_ROW_SCHEMAS = {
    "CsvRowDeserializationSchema": _CSV,
    "CsvRowSerializationSchema": _CSV,
    "JsonRowDeserializationSchema": _JSON,
    "JsonRowSerializationSchema": _JSON,
}

MOVED_NAMES = {
    "penstock.common": _ROW_SCHEMAS,
    "penstock.common.serialization": _ROW_SCHEMAS,
    "penstock.datastream": {
        "ExternalizedCheckpointCleanup": "penstock.datastream.checkpoint_config",
        **dict.fromkeys(
            ("FsStateBackend", "MemoryStateBackend", "RocksDBStateBackend"),
            "penstock.datastream.state_backend",
        ),
    },
    "penstock.datastream.connectors": {
        **dict.fromkeys(
            (
                "BucketAssigner",
                "FileEnumeratorProvider",
                "FileSink",
                "FileSource",
                "FileSourceBuilder",
                "FileSplitAssignerProvider",
                "OutputFileConfig",
                "RollingPolicy",
                "StreamFormat",
                "StreamingFileSink",
            ),
            _FILES,
        ),
        **dict.fromkeys(
            (
                "FlinkKafkaConsumer",
                "FlinkKafkaProducer",
                "KafkaOffsetResetStrategy",
                "KafkaOffsetsInitializer",
                "KafkaRecordSerializationSchema",
                "KafkaSink",
                "KafkaSource",
                "KafkaTopicPartition",
                "Semantic",
            ),
            _KAFKA,
        ),
        **dict.fromkeys(
            ("JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"),
            "penstock.datastream.connectors.jdbc",
        ),
        "NumberSequenceSource": "penstock.datastream.connectors.number_seq",
        **dict.fromkeys(("PulsarSink", "PulsarSource"), "penstock.datastream.connectors.pulsar"),
        **dict.fromkeys(
            ("RMQConnectionConfig", "RMQSink", "RMQSource"),
            "penstock.datastream.connectors.rabbitmq",
        ),
    },
}
"""By module and name, where Flink 1.x's programs still look for what has another place now."""

_BACKEND = "the option state.backend.type"
_RESTARTS = "the options restart-strategy.*"
_RETENTION = "set_externalized_checkpoint_retention"
_STORAGE = "the option execution.checkpointing.dir"
_NOTHING = "nothing in its place, for it has no effect"
_WINDOWS = "TumblingEventTimeWindows.of(size) or another assigner in "

OLD_METHODS = {
    **{
        f"StreamExecutionEnvironment.{method}": instead
        for method, instead in {
            "add_default_kryo_serializer": _NOTHING,
            "get_restart_strategy": _RESTARTS,
            "get_state_backend": _BACKEND,
            "register_type": _NOTHING,
            "register_type_with_kryo_serializer": _NOTHING,
            "set_restart_strategy": _RESTARTS,
            "set_state_backend": _BACKEND,
        }.items()
    },
    **{
        f"ExecutionConfig.{method}": instead
        for method, instead in {
            "add_default_kryo_serializer": _NOTHING,
            "disable_auto_type_registration": _NOTHING,
            "get_default_input_dependency_constraint": _NOTHING,
            "get_execution_mode": _NOTHING,
            "get_execution_retry_delay": _RESTARTS,
            "get_number_of_execution_retries": _RESTARTS,
            "get_restart_strategy": _RESTARTS,
            "register_kryo_type": _NOTHING,
            "register_pojo_type": _NOTHING,
            "register_type_with_kryo_serializer": _NOTHING,
            "set_default_input_dependency_constraint": _NOTHING,
            "set_execution_mode": _NOTHING,
            "set_execution_retry_delay": _RESTARTS,
            "set_number_of_execution_retries": _RESTARTS,
            "set_restart_strategy": _RESTARTS,
        }.items()
    },
    **{
        f"CheckpointConfig.{method}": instead
        for method, instead in {
            "enable_externalized_checkpoints": _RETENTION,
            "get_checkpoint_storage": _STORAGE,
            "get_externalized_checkpoint_cleanup": "get_externalized_checkpoint_retention",
            "is_prefer_checkpoint_for_recovery": _NOTHING,
            "set_checkpoint_storage": _STORAGE,
            "set_checkpoint_storage_dir": _STORAGE,
            "set_externalized_checkpoint_cleanup": _RETENTION,
            "set_prefer_checkpoint_for_recovery": _NOTHING,
        }.items()
    },
    "DataStream.time_window_all": _WINDOWS + "window_all(...)",
    "KeyedStream.time_window": _WINDOWS + "window(...)",
}
"""By class and method, what to use instead of what Flink 1.x had."""

OLD_CLASSES = {
    "penstock.common.execution_mode.ExecutionMode": _NOTHING,
    "penstock.common.serialization.SimpleStringEncoder": "Encoder.simple_string_encoder()",
    "penstock.datastream.checkpoint_config.ExternalizedCheckpointCleanup": "its new name, "
    "ExternalizedCheckpointRetention",
    "penstock.datastream.state_backend.FsStateBackend": "HashMapStateBackend and "
    "the option execution.checkpointing.dir",
    "penstock.datastream.state_backend.MemoryStateBackend": "HashMapStateBackend",
    "penstock.datastream.state_backend.RocksDBStateBackend": "EmbeddedRocksDBStateBackend and "
    "the option execution.checkpointing.dir",
    "penstock.datastream.time_characteristic.TimeCharacteristic": "a WatermarkStrategy, and "
    "windows of event time or processing time",
}
"""By its full name, the same for a class, which works without a warning."""

OLD_KEYWORDS = {"DataStream.key_by": {"key_type_info": "key_type"}}
"""By class and method, parameters that had other names."""


def refuse_module(name: str) -> None:
    """Raise if the module is one of PyFlink's that is not here."""
    if (reason := ABSENT_MODULES.get(name)) is not None:
        raise RefusedImportError.of_module(name, reason)


def missing_name(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module: finds what has moved, explains what is refused."""

    def find(name: str) -> Any:
        return find_name(module, name, sys._getframe(1))

    return find


def find_name(module: str, name: str, caller: FrameType) -> Any:
    """What `name` in `module` stands for, or the error that says why there is none."""
    if (home := MOVED_NAMES.get(module, {}).get(name)) is not None:
        value = getattr(import_module(home), name)
        # Past us and the module's `__getattr__`; Python leaves its own importer out.
        warnings.warn(f"{module}.{name} is now {home}.{name}", DeprecationWarning, stacklevel=3)
        return value
    if (reason := ABSENT_NAMES.get(module, {}).get(name)) is not None:
        error = RefusedImportError if _is_import(caller) else RefusedNameError
        raise error.of(f"{module}.{name}", reason)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _is_import(caller: FrameType) -> bool:
    """Whether it is `from … import …` that asks: it would hide the words of an AttributeError."""
    if caller.f_code.co_name == "_handle_fromlist":
        return True
    return caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]
