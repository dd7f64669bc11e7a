"""Savepoints of jobs that read Spark's DataFrames: sources go on where they were, by uid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gated import await_true, written

from penstock.common import Types
from penstock.common.serialization import Encoder
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import CheckpointMismatchError
from penstock.storage.snapshot import open_snapshot

pytestmark = pytest.mark.spark

ODD = "(a+b) %41 é,'~&"  # Spark writes such names into its logs in its own way
SCHEMA = "kind string, n long"
START = "execution.state-recovery.path"


class Sum(KeyedProcessFunction):
    def open(self, context: Any) -> None:
        self._sum = context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, context: Any) -> Any:
        total = (self._sum.value() or 0) + value.n
        self._sum.update(total)
        yield f"{context.get_current_key()} {total}"


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Any:
    """Puts numbers into a folder of a kind, one file at a time."""

    def put(kind: str, *numbers: int) -> None:
        rows = [(kind, n) for n in numbers]
        folder = tmp_path / f"in {ODD}" / kind
        spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(folder))

    return put


@pytest.fixture
def sums(spark: Any, make_env: Any, tmp_path: Path) -> Any:
    """Starts a job that sums the numbers of some folders, each a source with its name as uid."""

    def start(*kinds: str, job: str = "job", settings: dict[str, str] | None = None) -> Any:
        env = make_env(
            {
                "penstock.executor": "spark",
                "execution.checkpointing.dir": str(tmp_path / ODD),
                "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
                "penstock.job-id": job,
                **(settings or {}),
            }
        )
        streams = []
        for kind in kinds:
            if kind == "batch":
                frame = spark.createDataFrame([("batch", 1), ("batch", 1)], SCHEMA)
            else:
                reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
                frame = reader.parquet(str(tmp_path / f"in {ODD}" / kind))
            streams.append(env.from_spark(frame).uid(kind))
        stream = streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]
        summed = stream.key_by(lambda r: r.kind).process(Sum()).uid("sums")
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        summed.sink_to(sink.build()).uid("files")
        return env.execute_async("sums")

    return start


def await_sums(tmp_path: Path, **wanted: int) -> None:
    """Until the files say so, and not more."""
    await_true(lambda: all(f"{k} {n}" in written(tmp_path / "out") for k, n in wanted.items()))
    found: dict[str, int] = {}
    for line in written(tmp_path / "out"):
        kind, total = line.split()
        found[kind] = max(found.get(kind, 0), int(total))
    assert found == wanted


def test_sources_are_reordered_removed_and_added(sums: Any, files: Any, tmp_path: Path) -> None:
    for kind in ("a", "b", "c"):
        files(kind, 1)
        files(kind, 10)
    first = sums("a", "b")
    await_sums(tmp_path, a=11, b=11)
    path = first.stop_with_savepoint(False).result()

    files("a", 100)
    files("b", 200)
    second = sums("b", "a", settings={START: path})
    await_sums(tmp_path, a=111, b=211)
    path = second.stop_with_savepoint(False).result()

    with pytest.raises(CheckpointMismatchError, match="- a: positions"):
        sums("c", "b", settings={START: path}).get_job_execution_result().result()
    files("b", 1000)
    dropping = {"execution.state-recovery.ignore-unclaimed-state": "true"}
    third = sums("c", "b", settings={START: path, **dropping})
    await_sums(tmp_path, a=111, b=1211, c=11)
    third.cancel().result()


def test_a_source_is_read_anew_with_the_state_of_the_savepoint(
    sums: Any, files: Any, tmp_path: Path
) -> None:
    files("a", 1)
    files("a", 10)
    files("b", 5)
    first = sums("a", "b", "batch")
    await_sums(tmp_path, a=11, b=5, batch=2)
    path = first.stop_with_savepoint(False).result()
    reset = {"penstock.state-recovery.reset-sources": "a"}
    second = sums("a", "b", "batch", settings={START: path, **reset})
    await_sums(tmp_path, a=22, b=5, batch=2)
    second.cancel().result()


def test_time_travel_to_an_earlier_batch(sums: Any, files: Any, tmp_path: Path) -> None:
    """Spark reads again what came after that epoch, and nothing else; first the same job, then
    another from an epoch that the second life of the first has made."""
    retained = {
        "execution.checkpointing.num-retained": "100",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    for n in (1, 10, 100):
        files("a", n)
    first = sums("a", settings=retained)
    await_sums(tmp_path, a=111)
    first.cancel().result()

    def manifest(rows: int) -> Path:
        """Of the newest epoch that has read so many."""
        paths = (tmp_path / ODD / "job" / "epochs").glob("*.json")
        found = {path: open_snapshot(str(path)).manifest for path in paths}
        return max(
            (path for path, known in found.items() if known.rows_read.get("a") == rows),
            key=lambda path: found[path].epoch,
        )

    files("a", 1000)
    second = sums("a", settings={**retained, START: str(manifest(2))})
    await_sums(tmp_path, a=1111)
    second.cancel().result()
    lines = ["a 1", "a 11", "a 111", "a 111", "a 1111"]
    assert written(tmp_path / "out") == lines

    third = sums("a", job="other", settings={**retained, START: str(manifest(3))})
    await_true(lambda: written(tmp_path / "out") == sorted([*lines, "a 1111"]))
    third.cancel().result()
