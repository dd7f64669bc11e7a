"""Files as sources and sinks, by PyFlink's names."""

from __future__ import annotations

from penstock.datastream.connectors._file_buckets import BucketAssigner
from penstock.datastream.connectors._file_sink import FileSink, StreamingFileSink
from penstock.datastream.connectors._file_sink_settings import (
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.datastream.connectors._file_source import (
    BulkFormat,
    FileEnumeratorProvider,
    FileOrder,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileOrder",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
