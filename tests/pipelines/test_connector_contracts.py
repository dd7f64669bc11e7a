"""What sinks and sources may tell the API: how to prepare a stream, and the type of records."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Types
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.print_sink import PrintSink
from penstock.datastream.utils import ResultTypeQueryable

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


class Doubled(StreamTransformer):
    def apply(self, ds: DataStream) -> DataStream:
        return ds.filter(lambda n: n != 2).map(lambda n: n * 2)


class Prepared(PrintSink, SupportsPreprocessing):
    transformer: StreamTransformer | None = Doubled()

    def get_transformer(self) -> StreamTransformer | None:
        return self.transformer


@locally
def test_a_sink_prepares_its_stream(env: StreamExecutionEnvironment, capsys: Any) -> None:
    env.set_parallelism(1)
    numbers = env.from_sequence(1, 3)
    numbers.sink_to(Prepared("double"))
    as_it_is = Prepared("single")
    as_it_is.transformer = None
    numbers.sink_to(as_it_is).name("single")
    env.execute()

    lines = capsys.readouterr().out.split("\n")
    assert sorted(line for line in lines if line) == [
        "double> 2", "double> 6", "single> 1", "single> 2", "single> 3",
    ]  # fmt: skip


class Bytes(NumberSequenceSource, ResultTypeQueryable):
    def get_produced_type(self) -> TypeInformation:
        return Types.BYTE()


@locally
def test_a_source_knows_its_type(env: StreamExecutionEnvironment) -> None:
    stream = env.from_source(Bytes(299, 300))

    assert stream.get_type() == Types.BYTE()
    assert sorted(stream.execute_and_collect()) == [43, 44], "wrapped to bytes"
    assert env.from_source(Bytes(1, 2), type_info=Types.INT()).get_type() == Types.INT()
