"""Programs as they were written for PyFlink 1.12 to 1.17, but for the package's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.common import Row
from penstock.common.configuration import Configuration
from penstock.common.restart_strategy import RestartStrategies
from penstock.common.serialization import SimpleStringEncoder
from penstock.common.time import Duration, Time
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import (
    CheckpointingMode,
    FlatMapFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from penstock.datastream.checkpoint_config import ExternalizedCheckpointCleanup
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import StateTtlConfig, ValueStateDescriptor
from penstock.datastream.state_backend import FsStateBackend, RocksDBStateBackend
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import UnsupportedFeatureError

# Names are the same on both executors.
locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


class SecondColumn(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Total(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1], value1[2] + value2[2]


def configured(env: StreamExecutionEnvironment, checkpoints: Path) -> None:
    env.set_parallelism(1)
    env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    env.enable_checkpointing(1000, CheckpointingMode.EXACTLY_ONCE)
    settings = env.get_checkpoint_config()
    settings.set_min_pause_between_checkpoints(500)
    settings.enable_externalized_checkpoints(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    env.set_state_backend(FsStateBackend(checkpoints.as_uri()))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))
    env.get_config().set_auto_watermark_interval(100)


@pytest.mark.filterwarnings("ignore:.*is of Flink 1.x:DeprecationWarning")
def test_time_windows(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    configured(env, tmp_path / "checkpoints")
    records = env.from_collection(
        collection=[("a", 1000, 1), ("b", 2000, 10), ("a", 4000, 2), ("a", 6000, 4)],
        type_info=Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]),
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(1)
    ).with_timestamp_assigner(SecondColumn())

    totals = (
        records.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda record: record[0], key_type_info=Types.STRING())  # type: ignore[call-arg]
        .time_window(Time.seconds(5))
        .reduce(Total())
        .map(lambda record: f"{record[0]} {record[2]}", output_type=Types.STRING())
    )

    assert sorted(totals.execute_and_collect("totals", 10)) == ["a 3", "a 4", "b 10"]
    assert (tmp_path / "checkpoints").exists(), "the state backend names the directory"


class Words(FlatMapFunction):
    def flat_map(self, value: str) -> Any:
        for word in value.split():
            yield Row(word, 1)


@locally
def test_word_count_into_files(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.set_parallelism(1)
    lines = env.from_collection(["to be or", "not to be"], type_info=Types.STRING())
    counted = (
        lines.flat_map(Words(), output_type=Types.ROW([Types.STRING(), Types.INT()]))
        .key_by(lambda row: row[0], key_type=Types.STRING())
        .reduce(lambda a, b: Row(a[0], a[1] + b[1]))
        .map(lambda row: f"{row[0]}={row[1]}", output_type=Types.STRING())
    )
    with pytest.warns(DeprecationWarning, match="StreamingFileSink is now") as caught:
        from penstock.datastream.connectors import StreamingFileSink
    assert {warning.filename for warning in caught} == {__file__}
    sink = StreamingFileSink.for_row_format(str(tmp_path / "out"), SimpleStringEncoder()).build()
    counted.add_sink(sink)
    env.execute("word_count")

    written = [path.read_text() for path in (tmp_path / "out").rglob("part-*")]
    assert sorted("".join(written).split()) == [
        "be=1", "be=2", "not=1", "or=1", "to=1", "to=2",
    ]  # fmt: skip


class Average(KeyedProcessFunction):
    """The state-access example of the 1.x documentation, with a time to live."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
        ttl = (
            StateTtlConfig.new_builder(Time.seconds(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .disable_cleanup_in_background()
            .build()
        )
        descriptor.enable_time_to_live(ttl)
        self.sum = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.sum.update((count, total))
        if count >= 2:
            self.sum.clear()
            yield value[0], total / count


@pytest.mark.filterwarnings("ignore:.*is of Flink 1.x:DeprecationWarning")
@locally
def test_state_access(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.set_state_backend(RocksDBStateBackend(str(tmp_path), True))
    stream = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)]).key_by(lambda r: r[0])

    assert list(stream.process(Average()).execute_and_collect()) == [(1, 4.0), (1, 5.5)]


@locally
def test_windows_of_both_times(env: StreamExecutionEnvironment) -> None:
    """`time_window` follows the time characteristic; `of` takes `Time`."""
    stream = env.from_elements(("a", 1)).key_by(0)
    with pytest.warns(DeprecationWarning, match=r"time_window is of Flink 1.x") as caught:
        tumbling = stream.time_window(Time.minutes(1))
    assert caught[0].filename == __file__
    assert repr(tumbling._assigner) == repr(TumblingEventTimeWindows.of(Time.minutes(1)))

    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    with pytest.warns(DeprecationWarning, match="time_window_all is of Flink 1.x"):
        sliding = stream.time_window_all(Time.minutes(1), Time.seconds(30))
    assert "SlidingProcessingTimeWindows" in repr(sliding._assigner)


@locally
def test_add_source(env: StreamExecutionEnvironment) -> None:
    stream = env.add_source(NumberSequenceSource(1, 3), "numbers", Types.LONG())
    assert sorted(stream.execute_and_collect()) == [1, 2, 3]

    with pytest.raises(UnsupportedFeatureError, match="pass it to from_source"):
        env.add_source("org.example.Source")


def test_a_configuration_of_strings() -> None:
    configuration = Configuration()
    configuration.set_string("penstock.executor", "local")
    configuration.set_integer("parallelism.default", 3)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    assert env.get_parallelism() == 3
