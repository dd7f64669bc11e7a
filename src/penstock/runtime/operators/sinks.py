"""Sinks: a Python sink with writer and committer, and a plain sink function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.datastream.connectors.base import Sink, SinkWriter, WriterContext
from penstock.datastream.functions import SinkFunction
from penstock.runtime.loops import Step, ending
from penstock.runtime.operators.base import (
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    opened,
)


class RecordContext(WriterContext, SinkFunction.Context):
    """The record being written."""

    def __init__(self, host: OperatorHost) -> None:
        self._scope = host.scope
        self._clock = host.clock
        self._time = host.time

    def timestamp(self) -> int | None:
        return self._scope.timestamp

    def current_watermark(self) -> int:
        return self._time.watermark

    def current_processing_time(self) -> int:
        return self._clock()


@dataclass(frozen=True)
class CallSink:
    """A sink function: called for every record, again after a failure."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "invoke")
        context = RecordContext(host)

        def process(value: Any) -> None:
            call(value, context)

        step = Step("$call(value, $context)", call=call, context=context)
        return FunctionOperator(self.function, process, ending(step))


@dataclass(frozen=True)
class WriteSink:
    """A sink with writers: one writer per subtask and epoch, made at the first record."""

    sink: Sink
    durable: bool = True
    """Whether what is to be committed must outlive the driver."""

    def open(self, host: OperatorHost) -> OpenOperator:
        return _OpenSink(self.sink, host)


class _OpenSink(OpenOperator):
    def __init__(self, sink: Sink, host: OperatorHost) -> None:
        self._sink = sink
        self._host = host
        self._writer: SinkWriter | None = None
        self._context = RecordContext(host)
        call = self._write

        def process(value: Any) -> None:
            call(value)

        self.process = process

    def _write(self, value: Any) -> None:
        writer = self._writer
        if writer is None:
            writer = self._writer = self._sink.create_writer(self._host.init_context())
        writer.write(value, self._context)

    def prepare_commit(self) -> list[Any]:
        writer = self._writer
        if writer is None:
            return []
        prepared = writer.prepare_commit()
        self._writer = None  # only now: one that failed is to be aborted
        writer.close()
        return prepared

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()
            writer.close()
