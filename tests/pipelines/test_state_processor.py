"""State as tables: a job's state is read as DataFrames, made of DataFrames, repaired; and a job
goes on with it. Jobs run locally; Spark reads and writes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import CheckpointCorruptError, InvalidArgumentError
from penstock.state.snapshot_reader import rows_of
from penstock.storage.snapshot import open_snapshot

pytestmark = pytest.mark.spark

KEYS = 5
GOOD = 40


@dataclass
class Account:
    owner: str
    balance: float
    opened: dt.date
    limits: dict[str, int]


ACCOUNT = ValueStateDescriptor("account", Types.DATACLASS(Account))
COUNT = ValueStateDescriptor("count", Types.LONG())
HISTORY = ListStateDescriptor("history", Types.LONG())
BY_PARITY = MapStateDescriptor("by parity", Types.STRING(), Types.LONG())
ANY = ValueStateDescriptor("any")
SHORT = ValueStateDescriptor("short", Types.LONG())
SHORT.enable_time_to_live(StateTtlConfig.new_builder(dt.timedelta(days=1)).build())


class Bank(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.account = runtime_context.get_state(ACCOUNT)
        self.count = runtime_context.get_state(COUNT)
        self.history = runtime_context.get_list_state(HISTORY)
        self.by_parity = runtime_context.get_map_state(BY_PARITY)
        self.any = runtime_context.get_state(ANY)
        self.short = runtime_context.get_state(SHORT)

    def process_element(self, n: int, ctx: Any) -> Iterator[Any]:
        key = ctx.get_current_key()
        account = self.account.value() or Account(key, 0.0, dt.date(2026, 1, 1), {})
        account.balance += n
        account.limits["last"] = n
        self.account.update(account)
        self.count.update((self.count.value() or 0) + 1)
        self.history.add(n)
        self.by_parity.put("even" if n % 2 == 0 else "odd", n)
        self.any.update({"n": n})
        self.short.update(n)
        ctx.timer_service().register_event_time_timer(1_000 + n)
        yield key, self.count.value(), account.balance, list(self.history.get())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        return iter(())


class Remembering(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("numbers", Types.LONG()))

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: int) -> int:
        self.state.add(value)
        return value


def _bank(env: Any, limit: int = 1000, end: int = GOOD + KEYS + 9) -> DataStream:
    """Dies of the first number beyond a limit."""

    def check(n: int) -> int:
        if n >= limit:
            raise RuntimeError("here it dies")
        return n

    numbers = env.from_sequence(0, end).uid("numbers").set_parallelism(1)
    checked = numbers.map(check, Types.LONG()).set_parallelism(1).uid("checked")
    remembered = checked.map(Remembering(), Types.LONG()).set_parallelism(1).uid("remembering")
    return remembered.key_by(lambda n: f"key {n % KEYS}").process(Bank()).uid("bank")


@pytest.fixture(scope="module")
def executor() -> str:
    return "local"


@pytest.fixture
def checkpoint(restartable_env: Any, collect_until_error: Any, tmp_path: Path) -> str:
    """Of a job that has died."""
    collect_until_error(_bank(restartable_env(), GOOD))
    return str(tmp_path / "checkpoints" / "job")


@pytest.fixture
def going_on(restartable_env: Any) -> Any:
    """What a job gives that begins from a savepoint."""

    def run(savepoint: str, build: Any, **settings: str) -> list[Any]:
        chosen = {"penstock.job-id": "second", "execution.state-recovery.path": savepoint}
        return list(build(restartable_env({**chosen, **settings})).execute_and_collect())

    return run


def _numbers_of(key: int) -> list[int]:
    return [n for n in range(GOOD) if n % KEYS == key]


def test_read(spark: Any, checkpoint: str) -> None:
    from penstock.state_processor import Savepoint

    savepoint = Savepoint.open(spark, checkpoint)
    kinds = {(info.operator, info.state): info.kind for info in savepoint.states()}
    assert kinds["bank", "by parity"] == "map"

    accounts = savepoint.read("bank", "account")
    assert accounts.schema.simpleString() == (
        "struct<key:string,value:struct<owner:string,balance:double,opened:date,"
        "limits:map<string,bigint>>>"
    )
    found = {row.key: row.value for row in accounts.collect()}
    assert {key: value.balance for key, value in found.items()} == {
        f"key {k}": float(sum(_numbers_of(k))) for k in range(KEYS)
    }
    assert found["key 2"].opened == dt.date(2026, 1, 1)
    assert found["key 2"].limits == {"last": _numbers_of(2)[-1]}

    lists = savepoint.read("bank", "history")
    assert {row.key: row.value for row in lists.collect()} == {
        f"key {k}": _numbers_of(k) for k in range(KEYS)
    }
    entries = savepoint.read("bank", "by parity").where("key = 'key 1'").collect()
    assert {row.map_key: row.value for row in entries} == {"odd": 31, "even": 36}
    assert savepoint.timers("bank").count() == GOOD
    stamped = savepoint.read("bank", "short").where("last_used > 1600000000000")
    assert stamped.count() == KEYS
    numbers = savepoint.operator_state("remembering", "numbers").select("value").collect()
    assert sorted(row.value for row in numbers) == list(range(GOOD))
    (position,) = savepoint.source_positions().collect()
    assert (position.source, position.finished) == ("numbers", False)


def test_pickles_are_opened_if_trusted(spark: Any, checkpoint: str) -> None:
    from penstock.state_processor import Savepoint

    closed = Savepoint.open(spark, checkpoint)
    (value,) = closed.read("bank", "any").where("key = 'key 3'").collect()
    assert bytes(value.value).startswith(b"\x80\x05")
    with pytest.raises(InvalidArgumentError, match="trust_pickle=True"):
        closed.read("bank", "any", value_schema="n long")

    trusted = Savepoint.open(spark, checkpoint, trust_pickle=True)
    (shown,) = trusted.read("bank", "any").where("key = 'key 3'").collect()
    assert shown.value == "{'n': 38}"
    frame = trusted.read("bank", "any", value_schema="n long")
    assert frame.selectExpr("max(value.n)").collect()[0][0] == GOOD - 1


def test_bootstrap(spark: Any, going_on: Any, tmp_path: Path) -> None:
    from penstock.state_processor import SavepointWriter

    path = str(tmp_path / "made")
    counts = spark.createDataFrame(
        [(f"key {k}", 100 * k) for k in range(KEYS)], "who string, n int"
    )
    accounts = spark.sql(
        "SELECT who AS key, named_struct('owner', who, 'balance', 0.5d, 'opened', "
        "DATE'2020-01-01', 'limits', map('last', -1L)) AS value FROM {c}",
        c=counts,
    )
    lists = spark.createDataFrame(
        [("key 0", [-2, -1]), ("key 1", [])], "key string, value array<int>"
    )
    maps = spark.createDataFrame([("key 0", "even", 7)], "key string, map_key string, value long")
    shorts = spark.createDataFrame([("key 0", 7)], "key string, value long")
    writer = SavepointWriter.new(spark, parallelism=2)
    writer.with_keyed_state("bank", COUNT, counts, key="who", value="n")
    writer.with_keyed_state("bank", ACCOUNT, accounts)
    writer.with_keyed_state("bank", HISTORY, lists)
    writer.with_keyed_state("bank", BY_PARITY, maps)
    writer.with_keyed_state("bank", SHORT, shorts)
    made = writer.write(path)

    assert {row.key: row.value for row in made.read("bank", "count").collect()} == {
        f"key {k}": 100 * k for k in range(KEYS)
    }
    assert {row.key: row.value for row in made.read("bank", "history").collect()} == {
        "key 0": [-2, -1]
    }
    files = spark.read.parquet(f"{path}/state")
    assert files.count() == KEYS + KEYS + 1 + 1 + 1

    # At another parallelism than it was written with, too.
    results = going_on(path, lambda env: _bank(env, end=4), **{"parallelism.default": "3"})
    assert sorted(results) == [
        (f"key {n}", 100 * n + 1, n + 0.5, [-2, -1, 0] if n == 0 else [n]) for n in range(KEYS)
    ]


def test_repair(spark: Any, checkpoint: str, going_on: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import col, lit, when

    from penstock.state_processor import Savepoint, SavepointWriter

    before = Savepoint.open(spark, checkpoint)
    path = str(tmp_path / "repaired")
    balance = col("value").withField("balance", lit(-1.0))
    right = when(col("key") == "key 2", balance).otherwise(col("value"))
    writer = SavepointWriter.from_existing(before)
    writer.change("bank", "account", lambda df: df.withColumn("value", right))
    writer.change("bank", "history", lambda df: df.where("key <> 'key 3'"))
    writer.change("bank", "any", lambda df: df)
    writer.remove_state("bank", "short")
    writer.remove_state("remembering", "numbers")
    after = writer.write(path)

    assert after.snapshot.is_savepoint
    listed = {(info.operator, info.state) for info in after.states()}
    assert ("bank", "short") not in listed
    assert ("remembering", "numbers") not in listed
    assert after.timers("bank").count() == GOOD
    assert before.read("bank", "account").where("value.balance = -1").count() == 0

    results = going_on(path, _bank)
    first = {}
    for key, count, total, numbers in results:
        first.setdefault(key, (count, total, numbers))
    for k in range(KEYS):
        n = GOOD + k
        was = -1.0 if k == 2 else float(sum(_numbers_of(k)))
        listed = [] if k == 3 else _numbers_of(k)
        assert first[f"key {k}"] == (GOOD // KEYS + 1, was + n, [*listed, n])
    assert open_snapshot(checkpoint).manifest.epoch == before.snapshot.manifest.epoch


def test_renamed_and_removed_operators(spark: Any, checkpoint: str, tmp_path: Path) -> None:
    from penstock.state_processor import Savepoint, SavepointWriter

    before = Savepoint.open(spark, checkpoint)
    writer = SavepointWriter.from_existing(before).rename_operator("bank", "the bank")
    after = (
        writer.remove_operator("remembering")
        .reset_source("numbers")
        .write(str(tmp_path / "renamed"))
    )
    assert {info.operator for info in after.states()} == {"the bank"}
    assert after.read("the bank", "history").count() == KEYS
    assert {**after.snapshot.manifest.state_types} == {
        "the bank": before.snapshot.manifest.state_types["bank"]
    }
    assert (tmp_path / "renamed" / "signature.json").exists()
    (tmp_path / "renamed" / "signature.json").unlink()
    # What is not changed is copied, and trusted no more than before.
    again = SavepointWriter.from_existing(after).write(str(tmp_path / "again"))
    assert not (tmp_path / "again" / "signature.json").exists()
    (vertex,) = (v for v in again.snapshot.manifest.vertices.values() if v.subtasks[0].chain)
    assert sorted(f.checksum for s in vertex.subtasks for c in s.chain for f in c.files) == sorted(
        f.checksum for f in after.snapshot.manifest.files()
    )


class Colour(Enum):
    RED = 1


def test_keys_of_many_types_and_windows_stay_what_they_are(
    spark: Any, restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    from penstock.state_processor import Savepoint, SavepointWriter

    kinds = [1, "a", ("b", 2.5), Colour.RED]

    def check(n: int) -> int:
        if n >= 20:
            raise RuntimeError("here it dies")
        return n

    numbers = restartable_env().from_sequence(0, 30).set_parallelism(1)
    numbers = numbers.map(check, Types.LONG()).set_parallelism(1)
    windows = numbers.key_by(lambda n: kinds[n % 4]).count_window(1000)
    collect_until_error(windows.reduce(lambda a, b: a + b).uid("windows"))
    before = Savepoint.open(spark, str(tmp_path / "checkpoints" / "job"))
    read = before.read("windows", "trigger/count")
    counted = {row.key: (row.window, row.value) for row in read.collect()}
    assert counted["'a'"][0] == "count 0"
    assert {"1", "'a'", "('b', 2.5)", "Colour.RED"} == set(counted)

    writer = SavepointWriter.from_existing(before)
    writer.change("windows", "trigger/count", lambda df: df.withColumn("value", df.value + 100))
    after = writer.write(str(tmp_path / "changed"))
    again = after.read("windows", "trigger/count").collect()
    assert {row.key: (row.window, row.value) for row in again} == {
        key: (window, count + 100) for key, (window, count) in counted.items()
    }
    keys = {row.key: row.value for row in rows_of(after.snapshot, "windows", "trigger/count")}
    assert keys["b", 2.5] == counted["('b', 2.5)"][1] + 100


def test_a_damaged_file_is_found(spark: Any, tmp_path: Path) -> None:
    from penstock.state_processor import SavepointWriter

    frame = spark.createDataFrame([("a", 1)], "key string, value long")
    writer = SavepointWriter.new(spark).with_keyed_state("bank", COUNT, frame)
    made = writer.write(str(tmp_path / "made"))
    (file,) = (tmp_path / "made" / "state").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    copied, rewritten = SavepointWriter.from_existing(made), SavepointWriter.from_existing(made)
    for writer in (copied, rewritten.rename_operator("bank", "other")):
        with pytest.raises(CheckpointCorruptError, match="checksum"):
            writer.write(str(tmp_path / "second"))
        assert not (tmp_path / "second").exists()


def test_bad_frames_are_refused(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import lit

    from penstock.state_processor import SavepointWriter

    path = tmp_path / "bad"
    writer = SavepointWriter.new(spark)
    frame = spark.createDataFrame([("a", "1")], "key string, value string")
    with pytest.raises(
        InvalidArgumentError, match="column 'value' must be bigint, and it is string"
    ):
        writer.with_keyed_state("bank", COUNT, frame)
    with pytest.raises(InvalidArgumentError, match="no column 'who' for the key of state 'count'"):
        writer.with_keyed_state("bank", COUNT, frame.withColumn("value", lit(1)), key="who")
    struct = frame.selectExpr("key", "named_struct('owner', 1) AS value")
    with pytest.raises(InvalidArgumentError, match="is declared as Account"):
        writer.with_keyed_state("bank", ACCOUNT, struct)

    def write(rows: list[Any]) -> None:
        rows_frame = spark.createDataFrame(rows, "key string, value long")
        SavepointWriter.new(spark).with_keyed_state("bank", COUNT, rows_frame).write(str(path))

    with pytest.raises(InvalidArgumentError, match="has two rows for key 'a'"):
        write([("a", 1), ("b", 1), ("a", 2)])
    with pytest.raises(InvalidArgumentError, match="every record needs a key"):
        write([("a", 1), (None, 2)])
    with pytest.raises(InvalidArgumentError, match=r"value is null.*row of key 'a'"):
        write([("a", None)])
    assert not path.exists()


def test_the_guide_tells_the_truth(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    page = Path(__file__).parents[2] / "docs" / "guide" / "state-processor.md"
    namespace: dict[str, Any] = {"__name__": "guide"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(compile(block, page.name, "exec"), namespace)
        said = re.findall(r"^# ([\[(].*)", block, re.M)
        printed = capsys.readouterr().out
        assert [line for line in said if line not in printed] == []
