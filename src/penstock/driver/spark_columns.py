"""What Spark does with the rows of a source before they become records: columns, timestamps, and
partial results per key and slice of time."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from penstock.driver.spark_stages import FILE
from penstock.errors import InvalidProgramError
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.partials import (
    COUNT,
    HIGH,
    LOW,
    LOW_BITS,
    MAX,
    MAX_PAIR,
    MIN,
    MIN_PAIR,
    SUM,
    VALUES,
    Combined,
    Partial,
)
from penstock.runtime.physical import PhysicalOperator

_TIME, _START = "penstock time", "penstock start"
"""Not names that the user's columns are likely to have, in any case."""
_METADATA = "_metadata"
_ROW_BY_ROW = ("EventTimeWatermark", "Filter", "Generate", "Project", "SubqueryAlias")
"""Steps of a plan that take rows as they come."""
_MILLIS = ("bigint", "int", "smallint", "tinyint")
_EXCHANGE, _PREPARED = "ShuffleExchangeExec", "CoalesceExec"


def tried(method: str, make: Any, *columns: Column) -> DataFrame:
    """A frame made of columns, which must fit."""
    try:
        frame: DataFrame = make(*columns)
    except AnalysisException as error:
        raise InvalidProgramError.bad_column(method, str(error).splitlines()[0]) from None
    return frame


def position_of_field(method: str, frame: DataFrame, column: Column) -> int | None:
    """Which of the frame's own columns a column is, None if it is computed."""
    selected: Any = tried(method, frame.select, column)
    wanted = selected._jdf.queryExecution().analyzed().expressions().apply(0)
    if wanted.getClass().getSimpleName() != "AttributeReference":
        return None
    there = cast(Any, frame)._jdf.queryExecution().analyzed().output()
    # Not by name, of which only the case may differ.
    same = (at for at in range(there.size()) if there.apply(at).exprId() == wanted.exprId())
    return next(same, None)


def millis(frame: DataFrame, column: Column) -> Column | None:
    """A timestamp in milliseconds, or None if the column is neither that nor a timestamp."""
    kind = frame.select(column).dtypes[0][1]
    if kind == "timestamp":
        return F.unix_millis(column)
    return column.cast("bigint") if kind in _MILLIS else None


def with_columns(frame: DataFrame, operator: PhysicalOperator) -> DataFrame:
    """A source's rows after its steps; with timestamps in a last column, if they are one."""
    source: SparkSource = operator.operator
    try:
        rows = reduce(lambda rows, step: step.apply(rows), source.steps, frame)
        if source.time_column is None:
            return rows
        time = millis(rows, source.time_column)
        assert time is not None
        return rows.select("*", time.alias(_TIME))
    except AnalysisException as error:
        raise InvalidProgramError.foreign_column(
            f"{operator.name!r} ({operator.location})", str(error).splitlines()[0]
        ) from None


def with_files(frame: DataFrame) -> DataFrame:
    """With a number for the file that a row is from in a last column, if its rows are those of
    files as they were read: behind an exchange of the frame's they come in any order."""
    if _METADATA in map(str.lower, frame.columns) or not _tells_files(frame):
        return frame
    return frame.select("*", F.xxhash64(f"{_METADATA}.file_path").alias(FILE))


def _tells_files(frame: DataFrame) -> bool:
    """Not by trying: Spark logs what cannot be."""
    node = cast(Any, frame)._jdf.queryExecution().analyzed()
    known = node.metadataOutput()
    if _METADATA not in [known.apply(at).name() for at in range(known.size())]:
        return False
    while node.getClass().getSimpleName() in _ROW_BY_ROW:
        node = node.children().apply(0)
    return bool(node.children().size() == 0)


def prepared(frame: DataFrame, wanted: Combined, tasks: int) -> DataFrame:
    """The columns that are needed, by the names `combined` knows them by, the slice among them."""
    numbered = frame.toDF(*[_name(at) for at in range(len(frame.columns) - 1)], _TIME)
    used = sorted({at for partial in wanted.partials for at in partial.columns} | {*wanted.keys})
    time = F.col(_TIME)
    start = time - F.pmod(time - F.lit(wanted.offset), F.lit(wanted.slide))
    columns = [F.col(_name(at)) for at in used]
    return numbered.select(*columns, time, start.alias(_START)).coalesce(tasks)


def combined(frame: DataFrame, wanted: Combined) -> DataFrame:
    """Rows of partial results, of a batch that was `prepared`: one for each key and slice."""
    keys = [_name(at) for at in wanted.keys]
    partials = [F.max(_TIME), F.count(F.lit(1)), *map(_partial, wanted.partials)]
    names = [f"p{number}" for number in range(len(partials))]
    groups = [F.col(key).alias(f"k{number}") for number, key in enumerate(keys)]
    return frame.groupBy(*groups, _START).agg(
        *[partial.alias(name) for partial, name in zip(partials, names, strict=True)]
    )


def in_each_task(whole: DataFrame, tasks: int) -> DataFrame:
    """The same aggregation within each task, if that can be: else the whole one, in as many."""
    plan = without_exchange(whole)
    return whole.coalesce(tasks) if plan is None else rows_as_frame(plan.execute(), whole)


def rows_as_frame(rows: Any, like: DataFrame) -> DataFrame:
    """Rows of a plan as a frame, with the columns of another."""
    session: Any = like.sparkSession
    made = session._jsparkSession.internalCreateDataFrame(rows, like._jdf.schema(), False)
    return DataFrame(made, session)


def with_child(node: Any, child: Any, session: Any) -> Any:
    """The node of a physical plan over another one below it."""
    to_seq = session._jvm.org.apache.spark.api.python.PythonUtils.toSeq
    return node.withNewChildren(to_seq([child]))


def without_exchange(whole: DataFrame) -> Any:
    """The physical plan of an aggregation within each task: what the tasks have of one key is
    merged in Python. None if it has no exchange, or not one that can be taken out.
    """
    above: list[Any] = []
    plan = whole._jdf.queryExecution().executedPlan()
    while plan.getClass().getSimpleName() != _EXCHANGE:
        above.append(plan)
        children = plan.children()
        # Behind `prepared`, whose last step this is, there may be exchanges of the user's.
        if children.size() != 1 or plan.getClass().getSimpleName() == _PREPARED:
            return None
        plan = children.apply(0)
    session: Any = whole.sparkSession
    activate = session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession
    activate(session._jsparkSession)  # new nodes ask for it
    plan = plan.child()
    for node in reversed(above):
        plan = with_child(node, plan, session)
    return plan


def _name(position: int) -> str:
    return f"c{position}"


def _partial(partial: Partial) -> Column:
    made: Column = _PARTIALS[partial.kind](*[F.col(_name(at)) for at in partial.columns])
    return made


def _pair(by: Column, *values: Column) -> Column:
    several = [value.alias(f"v{at}") for at, value in enumerate(values)]
    value = values[0] if len(values) == 1 else F.struct(*several)
    return F.when(by.isNotNull(), F.struct(by.alias("by"), value.alias("value")))


_PARTIALS: dict[str, Any] = {
    COUNT: F.count,
    SUM: F.sum,
    HIGH: lambda value: F.sum(F.shiftright(value, LOW_BITS)),
    LOW: lambda value: F.sum(value.bitwiseAND(F.lit((1 << LOW_BITS) - 1))),
    MIN: F.min,
    MAX: F.max,
    MIN_PAIR: lambda by, *values: F.min(_pair(by, *values)),
    MAX_PAIR: lambda by, *values: F.max(_pair(by, *values)),
    VALUES: F.collect_set,
}
