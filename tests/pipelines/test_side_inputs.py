"""Side inputs: a table beside a stream, read at the start, at an interval or in every epoch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from penstock.common import Duration
from penstock.datastream import DataStream, MapFunction
from penstock.datastream.functions import JoinFunction
from penstock.driver.epoch_report import EpochReport
from penstock.errors import InvalidArgumentError, SideInputError, UserFunctionError
from penstock.testing import ScriptedSource

on_local = pytest.mark.parametrize("executor", ["local"], indirect=True)
on_spark = pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)

RATES = [("eur", 2), ("usd", 3), ("eur", 5)]
ORDERS = [("eur", 10), ("usd", 20), ("chf", 30)]
COLUMNS = {"currency": [c for c, _ in RATES], "rate": [r for _, r in RATES]}


@dataclass(frozen=True)
class Rate:
    rate: int
    currency: str


class Versions:
    """A table that is another one whenever it is read: every currency at 1, then at 2, …"""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> list[tuple[str, int]]:
        self.reads += 1
        return [(currency, self.reads) for currency in ("eur", "usd")]


def found(stream: DataStream) -> list[Any]:
    return sorted(stream.execute_and_collect(), key=repr)


def priced(order: Any, rate: Any) -> tuple[str, int]:
    return order[0], order[1] * rate[1]


PRICED = [("eur", 20), ("eur", 50), ("usd", 60)]


@on_local
@pytest.mark.parametrize(
    "table",
    [
        RATES,
        lambda: iter(RATES),
        pd.DataFrame(COLUMNS),
        lambda: pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
    ],
    ids=["rows", "function", "pandas", "arrow", "batch"],
)
def test_kinds_of_tables(make_env: Any, table: Any) -> None:
    """All rows of a key match; of a record whose key has none nothing remains."""
    env = make_env()
    rates = env.side_input(table, key=0)
    assert found(env.from_collection(ORDERS).lookup(rates, 0, priced)) == PRICED


@on_local
@pytest.mark.parametrize(
    ("record_type", "row"),
    [
        (None, "Record(currency='usd', rate=3)"),
        (tuple, "('usd', 3)"),
        (dict, "{'currency': 'usd', 'rate': 3}"),
        (Rate, "Rate(rate=3, currency='usd')"),
    ],
)
def test_kinds_of_rows(make_env: Any, record_type: Any, row: str) -> None:
    env = make_env()
    key = 0 if record_type is tuple else "currency"
    rates = env.side_input(pd.DataFrame(COLUMNS), key=key, record_type=record_type)
    pairs = env.from_elements(("usd", 1)).lookup(rates, lambda order: order[0])
    assert [(order, repr(row)) for order, row in found(pairs)] == [(("usd", 1), row)]


class Labelled(JoinFunction):
    def open(self, runtime_context: Any) -> None:
        self.label = runtime_context.get_task_name()

    def join(self, first: Any, second: Any) -> Any:
        return self.label, first[0], second


@on_local
def test_left_join_by_two_columns_behind_a_key(make_env: Any) -> None:
    env = make_env()
    rows = [("a", 1, "x"), ("a", 2, "y"), (None, 3, "never")]
    places = env.side_input(rows, key=(0, 1), name="places")
    none = env.side_input([(None, "never")], key=0)
    orders = env.from_elements(("a", 1), ("a", 2), ("b", 1)).key_by(0)
    placed = orders.lookup(places, [0, 1], Labelled(), how="left").name("placed")
    never = orders.lookup(none, lambda order: None, lambda order, row: row, how="left")
    assert found(placed.union(never)) == [
        ("placed", "a", ("a", 1, "x")),
        ("placed", "a", ("a", 2, "y")),
        ("placed", "b", None),
        None,
        None,
        None,
    ]


class Convert(MapFunction):
    """Reads two tables, each by its own way; one by the handle, one by its name."""

    def __init__(self, rates: Any) -> None:
        self.rates = rates

    def open(self, runtime_context: Any) -> None:
        self.table = runtime_context.get_side_input(self.rates)
        self.names = runtime_context.get_side_input("names")

    def map(self, value: Any) -> Any:
        first = self.table.get(value[0])
        total = sum(rate for _, rate in self.table.get_all(value[0]))
        return value[0], first, total, len(self.table.rows()), list(self.names.rows())


def test_tables_in_a_function(make_env: Any) -> None:
    env = make_env()
    rates = env.side_input(RATES, key=lambda row: row[0], name="rates")
    names = env.side_input(["one", "two"], name="names")
    converted = env.from_elements(("eur", 1), ("chf", 1)).map(Convert(rates))
    assert found(converted.with_side_inputs(rates, names)) == [
        ("chf", None, 0, 3, ["one", "two"]),
        ("eur", ("eur", 2), 7, 3, ["one", "two"]),
    ]


# Three epochs with records, and the last one, which has none.
SCRIPT = [[("eur", 1)], [("eur", 10), ("usd", 10)], [("usd", 100)]]


@pytest.mark.parametrize(
    ("refresh", "expected", "reads"),
    [
        (None, [1, 10, 10, 100], 1),
        (dt.timedelta(hours=1), [1, 10, 10, 100], 1),
        ("epoch", [1, 20, 20, 300], 4),
    ],
    ids=["once", "hourly", "epoch"],
)
@on_local
def test_when_a_table_is_read(make_env: Any, refresh: Any, expected: list[int], reads: int) -> None:
    """In an epoch, all tasks see the same version."""
    env = make_env()
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    table = Versions()
    rates = env.side_input(table, key=0, refresh=refresh, name="rates")
    orders = env.from_source(ScriptedSource(SCRIPT)).rebalance()
    amounts = orders.lookup(rates, 0, priced).map(lambda order: order[1])
    assert sorted(amounts.execute_and_collect()) == expected
    assert table.reads == reads
    seen = [report.side_inputs["rates"] for report in reports]
    assert [status.rows for status in seen] == [2] * 4
    assert all(status.bytes > 0 and status.seconds >= 0 for status in seen)
    assert all((status.age == 0) == (reads == 4) for status in seen[1:])
    assert seen[0].read_at <= seen[-1].read_at


@on_local
def test_old_versions_are_deleted(restartable_env: Any, tmp_path: Path) -> None:
    env = restartable_env()
    kept: list[list[str]] = []
    side = tmp_path / "checkpoints" / "job" / "side"
    env.add_epoch_listener(lambda report: kept.append([path.name for path in side.iterdir()]))
    rates = env.side_input(Versions(), key=0, refresh="epoch")
    same = env.side_input(lambda: RATES, key=0, refresh="epoch")
    orders = env.from_source(ScriptedSource(SCRIPT))
    found(orders.lookup(rates, 0, priced).lookup(same, 0, priced))
    assert [len(names) for names in kept] == [2] * 4
    assert len({name for names in kept for name in names}) == 5  # what is the same stays


def test_an_epoch_that_is_run_again(make_env: Any) -> None:
    """One that failed has left nothing; it is run with the table of then."""
    env = make_env(
        {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"}
    )
    table = Versions()
    script = [[("eur", 1)], [("eur", 10), ScriptedSource.FAIL, ("usd", 10)], [("usd", 100)]]
    rates = env.side_input(table, key=0, refresh="epoch")
    amounts = env.from_source(ScriptedSource(script)).lookup(rates, 0, priced)
    assert sorted(amounts.map(lambda order: order[1]).execute_and_collect()) == [1, 30, 30, 400]


@on_local
def test_a_table_that_cannot_be_read_for_a_while(make_env: Any) -> None:
    env = make_env(
        {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"}
    )
    good = Versions()

    def table() -> Any:
        rows = good()
        if good.reads == 2:
            raise ConnectionError("the database is away")
        return rows

    rates = env.side_input(table, key=0, refresh="epoch")
    amounts = env.from_source(ScriptedSource(SCRIPT)).lookup(rates, 0, priced)
    assert sorted(amounts.map(lambda order: order[1]).execute_and_collect()) == [1, 30, 30, 400]


def _broken() -> Any:
    raise ConnectionError("the database is away")


@on_local
@pytest.mark.parametrize(
    ("table", "key", "record_type", "message"),
    [
        (_broken, 0, None, "cannot be read: ConnectionError: the database is away (at "),
        (
            pa.table(COLUMNS),
            "money",
            None,
            "its key ['money'] is not among its columns [",
        ),
        (pa.table(COLUMNS), 7, None, "cannot be used: "),
        (lambda: {"eur": 1}, 0, None, "an Arrow table or a list of rows, got dict"),
        (lambda: 5, 0, None, "an Arrow table or a list of rows, got int"),
        ([(n, n) for n in range(101)], 0, None, "it has more than 100 rows"),
        (pa.table({"rate": [1]}), 0, Rate, "Rate has fields ['currency'] that the DataFrame lacks"),
    ],
    ids=["raises", "no_column", "no_position", "dict", "int", "too_large", "other_fields"],
)
def test_bad_tables(make_env: Any, table: Any, key: Any, record_type: Any, message: str) -> None:
    env = make_env({"penstock.side-input.max-rows": "100"})
    rates = env.side_input(table, key=key, name="rates", record_type=record_type)
    with pytest.raises(SideInputError) as caught:
        found(env.from_collection(ORDERS).lookup(rates, 0))
    assert message in str(caught.value)
    assert f"side input 'rates' ({__file__}:" in str(caught.value)


@on_local
@pytest.mark.parametrize("refresh", ["hourly", 0, Duration.of_millis(-1), 1.5, True])
def test_bad_intervals(make_env: Any, refresh: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="refresh must be"):
        make_env().side_input(RATES, key=0, refresh=refresh)


@on_local
def test_bad_uses(make_env: Any) -> None:
    env = make_env()
    orders = env.from_collection(ORDERS)
    rates = env.side_input(RATES, key=0, name="rates")
    others = make_env().side_input(RATES, key=0, name="rates")
    uses: list[tuple[Callable[[], Any], str]] = [
        (lambda: orders.lookup(RATES, 0), "what lookup takes must be a SideInput"),
        (lambda: orders.lookup(others, 0), "is another's"),
        (lambda: orders.lookup(env.side_input(RATES), 0), "lookup needs a side input with a key"),
        (lambda: orders.lookup(rates, 0, how="right"), "how must be 'inner' or 'left'"),
        (lambda: orders.lookup(rates, 0, Convert(rates)), "lookup needs a callable"),
        (lambda: env.side_input(RATES, name="rates"), "there is a side input 'rates' already"),
        (lambda: orders.map(str).with_side_inputs("rates"), "what with_side_inputs takes must be"),
    ]
    for use, message in uses:
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert message in str(caught.value)


@on_local
def test_a_table_that_the_operator_was_not_given(make_env: Any) -> None:
    env = make_env()
    rates = env.side_input(RATES, key=0, name="rates")
    with pytest.raises(InvalidArgumentError, match=r"operator 'Map'.*has no side input 'rates'"):
        found(env.from_collection(ORDERS).map(Convert(rates)))


@on_local
def test_an_error_in_the_function_names_its_line(make_env: Any) -> None:
    env = make_env()
    rates = env.side_input(RATES, key=0)
    looked_up = env.from_collection(ORDERS).lookup(rates, 0, lambda order, row: 1 / 0)
    with pytest.raises(UserFunctionError, match=rf"'Lookup .*' failed at {__file__}:\d+: ZeroDiv"):
        found(looked_up)


@on_spark
def test_frames_of_spark(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """A file that is replaced while the job runs is read anew."""
    path = str(tmp_path / "rates")

    def write(rate: int) -> None:
        rows = spark.createDataFrame([("eur", rate)], "currency string, rate int")
        rows.write.mode("overwrite").parquet(path)

    write(2)
    env = make_env()

    def watch(report: EpochReport) -> None:
        if report.epoch == 1:
            write(3)

    env.add_epoch_listener(watch)
    fresh = env.side_input(spark.read.parquet(path), key="currency", refresh="epoch")
    frozen = env.side_input(spark.read.parquet(path), key="currency")
    script = [[("eur", 1)], [("eur", 10)], [("eur", 100)]]
    orders = env.from_source(ScriptedSource(script))
    both = orders.lookup(fresh, 0, lambda order, row: (*order, row.rate)).lookup(
        frozen, 0, lambda order, row: (order[1], order[2], row.rate)
    )
    assert sorted(both.execute_and_collect()) == [(1, 2, 2), (10, 2, 2), (100, 3, 2)]


@on_spark
def test_an_epoch_that_reads_no_table_is_one_job(spark: Any, make_env: Any) -> None:
    env = make_env()
    jobs: list[int] = []
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    env.add_epoch_listener(lambda report: jobs.append(scheduler.numTotalJobs()))
    rates = env.side_input(spark.createDataFrame(RATES, "currency string, rate int"), "currency")
    orders = env.from_source(ScriptedSource([[("eur", 1)], [("eur", 2)], [("usd", 3)]]))
    assert len(list(orders.lookup(rates, 0).execute_and_collect())) == 5
    assert [after - before for before, after in pairwise(jobs)] == [1, 1, 1]


@on_spark
def test_bad_frames_of_spark(spark: Any, make_env: Any) -> None:
    env = make_env()
    with pytest.raises(InvalidArgumentError, match="it is a streaming DataFrame"):
        env.side_input(spark.readStream.format("rate").load(), key="value")
    with pytest.raises(InvalidArgumentError, match=r"its key \['x'\] is not among its columns"):
        env.side_input(spark.range(3), key="x")
