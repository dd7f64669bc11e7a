"""Streams under PyFlink's module path; each class has a module of its own."""

from __future__ import annotations

from penstock.datastream._data_stream import CachedDataStream, DataStream
from penstock.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from penstock.datastream.closeable_iterator import CloseableIterator
from penstock.datastream.connected_streams import ConnectedStreams
from penstock.datastream.data_stream_sink import DataStreamSink
from penstock.datastream.iterative_stream import ConnectedIterativeStreams, IterativeStream
from penstock.datastream.keyed_stream import KeyedStream
from penstock.datastream.split_stream import SplitStream
from penstock.datastream.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedIterativeStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IterativeStream",
    "KeyedStream",
    "SplitStream",
    "WindowedStream",
]
