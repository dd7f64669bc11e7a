"""A job to be killed: numbered records are counted per key and land in an exactly-once file sink.

Before that they can go round a loop. Instead they can go through windows (`window_program`, or with
Spark's help `columnar_program`), or through a program with everything that streams can do with each
other (`everything_program`).

Run as a script, again and again until it ends by itself; everything it needs is in its arguments.
The last line that it prints says as JSON what this run saw: epochs, images, restarts.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

import cloudpickle

from penstock.common import Configuration, Encoder, Types
from penstock.datastream import (
    CheckpointingMode,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors import file_system
from penstock.datastream.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    InitContext,
    ReadResult,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    Split,
    WriterContext,
)
from penstock.datastream.state import ValueStateDescriptor

SPLITS = 4
"""A fixed number: any parallelism deals out the same ones."""
STAGING = ".staging"
_PROGRAMS = ("counting", "windows", "columnar", "file columns", "loop", "everything")
TURNS = 5


def records_of_split(split: int, records: int, keys: int) -> list[tuple[str, int]]:
    """The records of a split, in order. A key is in one split only, its numbers have no gaps."""
    mine = range(split, keys, SPLITS)
    return [(f"k{mine[i % len(mine)]}", i // len(mine)) for i in range(records // SPLITS)]


class NumberedRecords(Source):
    def __init__(self, records: int, keys: int) -> None:
        self.records = records
        self.keys = keys

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(str(number), number, 0) for number in range(SPLITS)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _NumberedReader(self.records, self.keys)


class _NumberedReader(SourceReader):
    def __init__(self, records: int, keys: int) -> None:
        self._all = {s: records_of_split(s, records, keys) for s in range(SPLITS)}

    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        records = self._all[split.data]
        stop = position + max_records
        return ReadResult(records[position:stop], stop, finished=stop >= len(records))


class CountPerKey(KeyedProcessFunction):
    """Gives (key, number, count so far, distance from the number before)."""

    def __init__(self, number: str) -> None:
        self._number = number

    def open(self, runtime_context: RuntimeContext) -> None:
        number = getattr(Types, self._number)()
        self._count = runtime_context.get_state(ValueStateDescriptor("count", number))
        self._last = runtime_context.get_state(ValueStateDescriptor("last", number))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        key, number = value
        count = (self._count.value() or 0) + 1
        last = self._last.value()
        assert last is None or isinstance(last, int) == (self._number == "LONG")
        self._count.update(count)
        self._last.update(number)
        yield key, number, count, number - (-1 if last is None else last)


class FileSink(Sink):
    """A file per subtask, epoch and attempt: hidden until it is committed by a rename."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def create_writer(self, context: InitContext) -> SinkWriter:
        name = f"{context.epoch:05d}-{context.subtask_index}-{context.attempt}.jsonl"
        return _FileWriter(self.directory, name)

    def create_committer(self) -> Committer:
        return _Rename(self.directory)


class _FileWriter(SinkWriter):
    def __init__(self, directory: str, name: str) -> None:
        self._name = name
        self._path = os.path.join(directory, STAGING, name)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._file = open(self._path, "w")  # noqa: SIM115 - closed at the end of the epoch

    def write(self, value: Any, context: WriterContext) -> None:
        self._file.write(json.dumps(value) + "\n")

    def prepare_commit(self) -> list[str]:
        self._file.flush()
        os.fsync(self._file.fileno())
        return [self._name]

    def abort(self) -> None:
        os.unlink(self._path)

    def close(self) -> None:
        self._file.close()


class _Rename(Committer):
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def commit(self, committables: list[Committable]) -> None:
        for committable in committables:
            staged = os.path.join(self._directory, STAGING, committable.data)
            # The epoch as the engine gives it now: a repeated commit must come under the same.
            name = f"part-{committable.epoch:05d}-{committable.data}"
            final = os.path.join(self._directory, name)
            if not os.path.exists(final):
                os.rename(staged, final)


class _Watch:
    """What this run saw."""

    def __init__(self, root: str, stop_after: int | None, await_image: bool) -> None:
        self._state = os.path.join(root, "state")
        self._stop_after = stop_after
        self._await_image = await_image
        self._images: set[str] = set()
        self.epochs = 0
        self.first: int | None = None
        self.begun = threading.Event()

    def on_epoch(self, report: Any) -> None:
        self.epochs += 1
        self.begun.set()
        self.first = report.epoch if self.first is None else self.first
        self._look_for_images()
        deadline = time.monotonic() + (3 if self._await_image and self.epochs > 3 else 0)
        while not self._images and time.monotonic() < deadline:
            time.sleep(0.02)
            self._look_for_images()
        print(f"epoch {report.epoch} {sum(report.records_in.values())}", flush=True)
        if self._stop_after is not None and self.epochs >= self._stop_after:
            os._exit(38)

    def _look_for_images(self) -> None:
        if os.path.isdir(self._state):
            names = os.listdir(self._state)
            self._images.update(n for n in names if ".image-" in n and not n.startswith("."))

    def summary(self) -> dict[str, Any]:
        return {
            "epochs": self.epochs,
            "first": self.first,
            "images": len(self._images),
            "spark_jobs": _spark_jobs(),
        }


def _spark_jobs() -> int:
    """How many jobs Spark has run in this process."""
    if "pyspark" not in sys.modules:
        return 0
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    return int(session.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def configuration_of(arguments: argparse.Namespace) -> Configuration:
    configuration = Configuration()
    settings = {
        "execution.checkpointing.dir": arguments.checkpoints,
        "penstock.job-id": "counting",
        "penstock.executor": arguments.executor,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "100 ms",
        "state.backend.local-dir": os.path.join(arguments.checkpoints, "stores"),
    }
    settings.update(item.split("=", 1) for item in arguments.config)
    for key, value in settings.items():
        configuration.set_string(key, value)
    return configuration


def source_of(env: StreamExecutionEnvironment, arguments: argparse.Namespace) -> Any:
    if arguments.input is None:
        source = NumberedRecords(arguments.records, arguments.keys)
        return env.from_source(source, source_name="numbered").uid("source")
    frame = frame_of(arguments, "key string, number bigint")
    return env.from_spark(frame, record_type=tuple, bounded=True).uid("source")


def frame_of(arguments: argparse.Namespace, schema: str) -> Any:
    """Two files of the input in each batch."""
    from penstock.driver.spark_session import spark_session

    reader = spark_session("local[2]", "counting").readStream.schema(schema)
    return reader.option("maxFilesPerTrigger", 2).parquet(arguments.input)


def counted(records: Any, number: str) -> Any:
    return records.key_by(lambda record: record[0]).process(CountPerKey(number)).uid("count")


def windowed(records: Any) -> Any:
    import window_program

    # Workers find this script's own classes in the plan, but do not know where its modules are.
    cloudpickle.register_pickle_by_value(window_program)
    return window_program.windowed(records)


def columnar(env: StreamExecutionEnvironment, arguments: argparse.Namespace) -> Any:
    import columnar_program

    cloudpickle.register_pickle_by_value(columnar_program)
    stuck = os.path.join(os.path.dirname(arguments.output), "stuck")
    if arguments.program == "file columns":
        return columnar_program.windowed_files(env, arguments.input, stuck)
    frame = frame_of(arguments, columnar_program.SCHEMA)
    return columnar_program.windowed(env, frame, stuck)


def everything(env: StreamExecutionEnvironment, arguments: argparse.Namespace) -> None:
    import everything_program

    cloudpickle.register_pickle_by_value(everything_program)

    def source(name: str, records: int) -> Any:
        numbered = NumberedRecords(records, arguments.keys)
        return env.from_source(numbered, source_name=name).uid(name)

    def sink(stream: Any, name: str) -> None:
        stream.sink_to(FileSink(os.path.join(arguments.output, name))).uid(f"{name}-sink")

    everything_program.built(source, arguments.records, sink)


def gone_round(records: Any) -> Any:
    """The same records, each after so many turns of a loop."""
    loop = records.map(lambda record: (TURNS, *record)).iterate().uid("loop")
    body = loop.map(lambda record: (record[0] - 1, *record[1:]))
    loop.close_with(body.filter(lambda record: record[0] > 0))
    return body.filter(lambda record: record[0] == 0).map(lambda record: record[1:])


class JsonLines(Encoder):
    def encode(self, value: Any) -> bytes:
        return json.dumps(value).encode() + b"\n"


def sink_of(arguments: argparse.Namespace) -> Sink:
    """The one of this script, or Penstock's own sink of files."""
    if arguments.sink == "own":
        return FileSink(arguments.output)
    return (
        file_system.FileSink.for_row_format(arguments.output, JsonLines())
        .with_bucket_assigner(file_system.BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def run(env: StreamExecutionEnvironment, watch: _Watch, savepoint: str | None) -> None:
    if savepoint is None:
        env.execute("counting")
        return
    job = env.execute_async("counting")
    watch.begun.wait()
    print(f"savepoint {job.trigger_savepoint(savepoint).result()}", flush=True)
    job.get_job_execution_result().result()


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--program", choices=_PROGRAMS, default="counting")
    parser.add_argument("--sink", choices=("own", "files"), default="own")
    parser.add_argument("--executor", default="local")
    parser.add_argument("--mode", default="EXACTLY_ONCE")
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--number", default="LONG", help="the type of what is in state")
    parser.add_argument("--input", help="directory of Parquet files, read by Spark")
    parser.add_argument("--stop-after", type=int, help="die after so many epochs of this run")
    parser.add_argument("--await-image", action="store_true", help="go slowly until there is one")
    parser.add_argument("--savepoint", help="directory for one that is made in the first epochs")
    parser.add_argument("--config", action="append", default=[], help="key=value")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment(configuration_of(arguments))
    env.set_parallelism(arguments.parallelism)
    env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode[arguments.mode])
    root = os.path.join(arguments.checkpoints, "counting")
    watch = _Watch(root, arguments.stop_after, arguments.await_image)
    env.add_epoch_listener(watch.on_epoch)
    if arguments.program == "everything":
        everything(env, arguments)
    elif arguments.program in ("columnar", "file columns"):
        columnar(env, arguments).sink_to(sink_of(arguments)).uid("sink")
        print(env.explain(), flush=True)
    else:
        records = source_of(env, arguments).map(lambda record: (record[0], int(record[1])))
        if arguments.program == "loop":
            records = gone_round(records)
        if arguments.program == "windows":
            results = windowed(records)
        else:
            results = counted(records, arguments.number)
        results.sink_to(sink_of(arguments)).uid("sink")
    run(env, watch, arguments.savepoint)
    print(json.dumps(watch.summary()), flush=True)
    # Spark's JVM needs seconds to end in order; nobody waits for it here.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
