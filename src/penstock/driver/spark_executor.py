"""Runs the plan on Spark: one plan built once, one Spark job per epoch.

If there are sources of Spark's, it decides when a batch starts and what is in it; `foreachBatch`
drives the batch's one frame, whose rows are acknowledgements, through the epoch loop. Epochs
without a batch of Spark's (all those of jobs with Python sources only, the last one, and those for
what Python sources or loops still hold) run the same stages on a small frame.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from penstock.driver.epoch_loop import EpochLoop, RunAgain
from penstock.driver.spark_batches import CombinedBatches
from penstock.driver.spark_calls import RepeatedCalls
from penstock.driver.spark_checkpoint import prepare_spark
from penstock.driver.spark_errors import engine_error
from penstock.driver.spark_frames import SourceFrames
from penstock.driver.spark_session import python_command, query_settings
from penstock.driver.spark_stages import (
    ORDER_PROPERTY,
    PAYLOAD_AT,
    ROW_SCHEMA,
    ShippedPlan,
    StageTask,
)
from penstock.errors import EngineError
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.tasks import read_acknowledgement
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import filesystem_for

_IDLE_SECONDS = 0.1
_STOP_SECONDS = 30


def _without_stop(record: logging.LogRecord) -> bool:
    """py4j logs what a callback raises; the end of a query is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], _Stop))


logging.getLogger("py4j.clientserver").addFilter(_without_stop)


class _Stop(Exception):
    """Ends a query from within.

    Spark takes an error for the end of a stopped query, and logs none, if it reads like this.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling stop: "
            "java.lang.InterruptedException"
        )


class SparkExecutor:
    """One job on one session."""

    def __init__(
        self,
        session: SparkSession,
        plan: PhysicalPlan,
        shipped: ShippedPlan,
        interval: float,
        timeout: float,
        python: str | None = None,
    ) -> None:
        self._plan = plan
        self._batch = plan.settings.batch
        self._tag = f"penstock-{plan.settings.run_id}"
        self._shipped = shipped
        self._python = python
        self._interval = interval
        self._timeout = timeout
        self._fs, root = filesystem_for(plan.settings.root)
        self._layout = CheckpointLayout(root, plan.settings.fork)
        self._frames = SourceFrames(session, plan, shipped, self._layout)
        self._session = self._frames.session
        self._calls = RepeatedCalls(
            self._session,
            self._settings,
            lambda copy: self._stages(self._frames.calls(session=copy)),
            f"penstock {plan.settings.job_name}",
        )
        self._combined = CombinedBatches(
            self._frames, self._stages, lambda: python_command(self._session, self._python)
        )
        self._pause = threading.Event()
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._query: Any = None
        self._busy = False
        self._takes_long = self._batch or any(
            getattr(described.operator, "waits", False)
            for vertex in plan.vertices
            for described in vertex.operators
        )
        self._collected = threading.Event()
        """Whether the last epoch's job has ended, one way or another."""
        self._collected.set()

    def run(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        """Epochs until the input ends or `stopping` says so."""
        if self._batch:
            self._run_batch(loop, stopping)
            return
        loop.slots = int(self._session.sparkContext.defaultParallelism)
        loop.paced = loop.paced or self._interval > 0
        if self._frames.has_spark_sources:
            self._stream(loop, stopping)
        else:
            loop.spark_sources = ()
        self._run_calls(loop, stopping)

    def _run_calls(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        """Epochs that have no batch of Spark's: of Python's sources alone, and those at the end."""
        earliest = 0.0
        while not loop.ended:
            final = loop.at_end()
            if not final:
                self._pause.wait(max(0.0, earliest - time.monotonic(), loop.pause_left()))
            if stopping():
                break
            before, started = loop.base, time.monotonic()
            self._extra_epoch(loop, final)
            # An empty loop is waited for as well.
            idle = _IDLE_SECONDS if _idle(before, loop) else 0.0
            interval = 0.0 if loop.exhausted() else self._interval
            earliest = max(started + interval, time.monotonic() + idle)

    def _run_batch(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        """All of the input in one epoch. If Spark finds nothing to read, it calls for none."""
        if not self._frames.in_batches:
            self._extra_epoch(loop, final=True, source=self._frames.whole)
            return
        self._stream(loop, stopping)
        if not loop.ended and not stopping():
            self._extra_epoch(loop, final=True)

    def say_farewell(self, loop: EpochLoop) -> None:
        """Let who listens hear of the job's last epoch."""
        with self._settings():
            frame = self._stages(self._frames.calls(to_all=True))
            loop.say_farewell(partial(self._collect, _payloads_of(frame)))

    def drain(self, loop: EpochLoop) -> None:
        """Bring event time to its end, though there may be more to read."""
        self._pause.clear()
        while not loop.ended:
            self._extra_epoch(loop, final=True)

    def close(self) -> None:
        """End waiting. An epoch under way is let finish, unless that may take long."""
        self._pause.set()
        over = self._collected
        if self._takes_long and not over.is_set():
            threading.Thread(target=self._give_up_epoch, args=(over,), daemon=True).start()

    def _give_up_epoch(self, over: threading.Event) -> None:
        while not over.is_set():  # again, should its job not have been submitted yet
            with contextlib.suppress(Exception):  # Spark may be gone
                self._session.sparkContext.cancelJobsWithTag(self._tag)
            over.wait(0.5)

    # Epochs with a batch of Spark's

    def _stream(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        self._failure = None
        self._ended.clear()
        self._busy = False
        with self._settings():
            loop.spark_sources = self._frames.names()
            prepare_spark(self._fs, self._layout, loop.base, loop.spark_sources, self._frames.named)
            frame = self._frames.streaming()
            if not self._frames.combines:
                frame = self._stages(frame)
            writer = (
                frame.writeStream.foreachBatch(self._on_batch(loop, stopping))
                .option("checkpointLocation", self._layout.spark)
                .queryName(f"penstock {self._plan.settings.job_name} {self._plan.settings.run_id}")
            )
            if self._batch:
                writer = writer.trigger(once=True)
            elif self._frames.ends_by_itself:
                writer = writer.trigger(availableNow=True)
            else:
                writer = writer.trigger(processingTime=f"{int(self._interval * 1000)} milliseconds")
            loop.rows_to_read = self._frames.rows_to_read()
            self._query = writer.start()
        self._await_end(stopping)

    def _await_end(self, stopping: Callable[[], bool]) -> None:
        """Wait until the query ends by itself or a batch says that it shall."""
        query = self._query
        over = threading.Event()
        failed: list[Exception] = []

        def watch() -> None:
            try:
                query.awaitTermination()
            except Exception as error:
                failed.append(error)
            finally:
                over.set()

        # In a thread of its own: to ask the JVM again and again takes time from every epoch.
        threading.Thread(target=watch, name="penstock query", daemon=True).start()
        while not over.is_set() and not self._ended.wait(0.02):
            if stopping() and not self._busy:
                self._ended.set()  # no batch would notice: there may be no data
        if self._ended.is_set():
            query.stop()
        elif failed:
            raise engine_error(failed[0]) from None
        if self._failure is not None:
            raise self._failure

    def _on_batch(
        self, loop: EpochLoop, stopping: Callable[[], bool]
    ) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            self._rest(loop)
            self._busy = True  # before it is asked: else the query may be stopped under an epoch
            if stopping():
                self._end_query()
            before = loop.base
            try:
                loop.close(
                    partial(self._collect, self._payloads_of_batch(frame)),
                    batch,
                    self._offsets(batch),
                    final=self._batch,
                    called=self._frames.ticking,
                )
            except BaseException as error:
                self._failure = error
                self._end_query()
            finally:
                self._busy = False
            if self._frames.ticking and _idle(before, loop):
                self._pause.wait(_IDLE_SECONDS)
            if not self._frames.ends_by_itself:
                # Before Spark looks for what there is to read, lest that be old when it is read.
                self._rest(loop)

        return on_batch

    def _rest(self, loop: EpochLoop) -> None:
        """The pause that must lie between two checkpoints."""
        self._pause.wait(loop.pause_left())

    def _end_query(self) -> NoReturn:
        """Have the query stopped by the thread that waits for it, without a commit of Spark's."""
        self._ended.set()
        deadline = time.monotonic() + _STOP_SECONDS
        while self._query is None or self._query.isActive:
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)
        raise _Stop

    def _offsets(self, batch: int) -> str:
        """What Spark has written about the batch before it calls us."""
        lines = self._fs.read(self._layout.spark_offsets(batch)).decode().splitlines()
        # The second line holds clock and settings; the rest are the sources' offsets.
        return "\n".join(lines[:1] + lines[2:])

    # Epochs without one

    def _extra_epoch(
        self, loop: EpochLoop, final: bool, source: Callable[[], DataFrame] | None = None
    ) -> None:
        while True:
            try:
                if source is None:
                    loop.close(partial(self._collect, self._calls.payloads), final=final)
                else:
                    with self._settings():
                        frame = self._stages(source())
                        loop.close(partial(self._collect, _payloads_of(frame)), final=final)
                return
            except RunAgain:
                continue

    # Both

    def _payloads_of_batch(self, frame: DataFrame) -> Callable[[], list[bytes]]:
        """All stages are in a batch's frame already, if nothing is combined."""
        if self._frames.combines:
            return lambda: self._combined.payloads(frame)
        return _payloads_of(frame)

    def _stages(self, frame: DataFrame) -> DataFrame:
        for level in range(1, self._plan.levels + 1):
            frame = (
                frame.repartitionById(self._plan.partitions(level), F.col("partition"))
                .sortWithinPartitions("time", "producer", "sequence")
                .mapInArrow(StageTask(self._shipped, level), ROW_SCHEMA)
            )
        return frame

    def _settings(self) -> AbstractContextManager[None]:
        return query_settings(self._session, self._frames.named, self._python)

    def _collect(
        self, collect: Callable[[], list[bytes]], order: EpochOrder
    ) -> list[Acknowledgement]:
        context = self._session.sparkContext
        context.setLocalProperty(ORDER_PROPERTY, order.to_text())
        context.addJobTag(self._tag)
        self._collected = over = threading.Event()
        too_long = threading.Timer(self._timeout, self._give_up_epoch, [over])
        too_long.daemon = True
        if not self._batch:
            too_long.start()
        started = time.monotonic()
        try:
            if self._takes_long and self._pause.is_set():
                raise EngineError(f"epoch {order.epoch} was given up: the job has been stopped")
            payloads = collect()
        except EngineError:
            raise
        except Exception as error:
            if not self._batch and time.monotonic() - started >= self._timeout:
                raise EngineError(
                    f"epoch {order.epoch} took longer than {self._timeout:g} s "
                    "(execution.checkpointing.timeout) and was cancelled"
                ) from None
            raise engine_error(error) from None
        finally:
            over.set()
            too_long.cancel()
        return [read_acknowledgement(bytes(payload)) for payload in payloads]


def _payloads_of(frame: DataFrame) -> Callable[[], list[bytes]]:
    return lambda: [row[PAYLOAD_AT] for row in frame.collect()]


def _idle(before: Any, loop: EpochLoop) -> bool:
    """Whether the epoch moved no source on, and left nothing in a loop."""
    after = loop.base
    return (
        before is not None
        and after is not None
        and not loop.looping
        and before.sources == after.sources
        and before.rows_read == after.rows_read
    )
