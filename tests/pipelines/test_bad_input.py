"""Bad input: one clear error that names the user's line and what to do; nothing is lost.

Each program below stands in a function of its own, whose lines the error must name.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pipeline_records import ByIdentity, Drifting

from penstock.common import Types
from penstock.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    InvalidProgramError,
    PenstockError,
    StateError,
    TypeMismatchError,
    UnpicklableError,
    UserFunctionError,
)

Program = Callable[[StreamExecutionEnvironment], DataStream]


def line_of(marker: str) -> int:
    """The number of the only line of this file that ends with `# <marker>`."""
    with open(__file__) as file:
        found = [n for n, line in enumerate(file, 1) if line.rstrip().endswith(f"# {marker}")]
    assert len(found) == 1, marker
    return found[0]


def assert_names(error: BaseException, marker: str) -> None:
    """The message names the marked line of this file, and is one sentence or two, no traceback."""
    assert f"test_bad_input.py:{line_of(marker)}" in str(error)
    assert "Traceback" not in str(error)
    assert len(str(error)) < 800


class HoldsLock(MapFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def map(self, value: Any) -> Any:
        return value


class StoresText(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("size", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._state.update("many")


class StoresLock(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("lock"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._state.update(threading.Lock())


def lambda_raises(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(2, 1, 0).map(lambda n: 1 / n)  # raises


def generator_raises(env: StreamExecutionEnvironment) -> DataStream:
    def halves(n: int) -> Any:
        yield n / 2
        raise LookupError("no more")  # generator

    return env.from_elements(2).flat_map(halves)


def key_selector_raises(env: StreamExecutionEnvironment) -> DataStream:
    keyed = env.from_elements(("a", 1), ("b",)).key_by(lambda r: r[1])  # selector
    return keyed.map(str)


def record_with_a_lock(env: StreamExecutionEnvironment) -> DataStream:
    locked = env.from_elements(1).map(lambda n: threading.Lock()).name("lock")  # unpicklable
    return locked.rebalance().map(lambda lock: 1)


def function_with_a_lock(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(HoldsLock()).name("holder")  # holder


def lambda_over_a_lock(env: StreamExecutionEnvironment) -> DataStream:
    lock = threading.Lock()
    return env.from_elements(1).key_by(lambda n: lock.locked()).map(str)  # closure


def state_with_a_lock(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).key_by(lambda n: n).process(StoresLock())  # state lock


def record_of_another_type(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(str, output_type=Types.INT())  # mistyped


def field_of_another_type(env: StreamExecutionEnvironment) -> DataStream:
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    return env.from_collection([("a", 1), ("b", "two")], pair)  # pair


def state_of_another_type(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).key_by(lambda n: n).process(StoresText())  # state


def key_of_another_type(env: StreamExecutionEnvironment) -> DataStream:
    keyed = env.from_elements("a").key_by(lambda n: n, key_type=Types.INT())  # key type
    return keyed.map(str)


def list_as_key(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements([1]).key_by(lambda n: n).map(str)  # list


def key_by_identity(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements("a").key_by(ByIdentity).map(str)  # identity


def key_with_changing_hash(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements("a").key_by(Drifting).map(str)  # drifting


def nan_as_key(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1.0, float("nan")).key_by(lambda n: n).map(str)  # nan


def nan_inside_a_key(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).key_by(lambda n: (n, float("nan"))).map(str)  # nan inside


def unknown_position(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(("a", 1)).key_by(2).map(str)  # position


def unknown_name(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements({"id": 1, "n": 2}, {"id": 1}).key_by("id").sum("count")  # name


def result_of_flat_map(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements("ab").flat_map(lambda text: text)  # text


def stops_iterating(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(lambda n: n).map(lambda n: next(iter([])))  # stops


def key_selector_stops(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).key_by(lambda n: next(iter([]))).map(str)  # selector stops


def builtin_raises(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements("1", "x").map(int).map(int)  # builtin


def wrong_arity(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(lambda a, b: a)  # arity


def number_from_flat_map(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).flat_map(lambda n: n)  # number


def exits(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(lambda n: sys.exit("enough"))  # exits


class OutputsByName(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.output("side", value)  # no tag


def output_by_name(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).process(OutputsByName()).name("aside")  # aside


def key_selector_gives_none(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements({"id": 1}).key_by(lambda r: r.get("user")).map(str)  # no key


def field_is_none(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements((None, 1)).key_by(0, key_type=Types.STRING()).map(str)  # no field


def partitioner_gives_none(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_elements(1)
    return numbers.partition_custom(lambda key, n: None, lambda n: n).map(str)  # nowhere


def split_gives_none(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).split(lambda n: None).select("a")  # no names


def close_raises(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_elements(1).map(FailsToClose()).map(str)  # close


class FailsToClose(MapFunction):
    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        list(map(int, ["late"]))


RUNTIME: list[tuple[Program, str, type[PenstockError], str]] = [
    (lambda_raises, "raises", UserFunctionError, "'Map .*ZeroDivisionError: division by zero"),
    (generator_raises, "generator", UserFunctionError, "LookupError: no more"),
    (key_selector_raises, "selector", UserFunctionError, "'key_by .*IndexError"),
    (record_with_a_lock, "unpicklable", UnpicklableError, "'lock'.*lock.*a record carries plain"),
    (state_with_a_lock, "state lock", StateError, "state 'lock' .*store what can be pickled"),
    (
        record_of_another_type,
        "mistyped",
        TypeMismatchError,
        "expected Integer.*got str '1'; convert",
    ),
    (field_of_another_type, "pair", TypeMismatchError, "got str 'two'; convert"),
    (
        state_of_another_type,
        "state",
        TypeMismatchError,
        "expected Integer.*got str 'many'; convert",
    ),
    (key_of_another_type, "key type", TypeMismatchError, "Integer.*got str 'a'; convert"),
    (list_as_key, "list", InvalidKeyError, r"key list \[1\] cannot be used: it is not hashable"),
    (key_by_identity, "identity", InvalidKeyError, "give ByIdentity __eq__ and __hash__ by value"),
    (key_with_changing_hash, "drifting", InvalidKeyError, "has another hash; give Drifting __eq__"),
    (nan_as_key, "nan", InvalidKeyError, "NaN is not equal to itself; replace it"),
    (nan_inside_a_key, "nan inside", InvalidKeyError, "NaN is not equal to itself; replace it"),
    (unknown_position, "position", InvalidArgumentError, "no position 2.*it has 2 fields"),
    (unknown_name, "name", InvalidArgumentError, "no field 'count'.*its fields are 'id', 'n'"),
    (stops_iterating, "stops", UserFunctionError, "'Map .*: StopIteration$"),
    (key_selector_stops, "selector stops", UserFunctionError, "'key_by .*: StopIteration$"),
    (builtin_raises, "builtin", UserFunctionError, r"failed at [^ ]*test_bad_input.*ValueError"),
    (wrong_arity, "arity", UserFunctionError, "failed at [^ ]*test_bad_input.*TypeError: .*'b'"),
    (number_from_flat_map, "number", UserFunctionError, "TypeError: 'int' object is not iterable"),
    (exits, "exits", UserFunctionError, "SystemExit: enough"),
    (output_by_name, "aside", InvalidArgumentError, "an OutputTag, got str 'side'"),
    (key_selector_gives_none, "no key", InvalidKeyError, "'key_by'.* gave None.* filter"),
    (field_is_none, "no field", InvalidKeyError, "'key_by'.* gave None"),
    (partitioner_gives_none, "nowhere", InvalidArgumentError, "from 0 to 1, got NoneType None"),
    (split_gives_none, "no names", InvalidArgumentError, "'Split'.* got NoneType None"),
    (close_raises, "close", UserFunctionError, "'Map .*ValueError: .*'late'"),
    (result_of_flat_map, "text", InvalidArgumentError, "a list, an iterable or None, got str 'ab'"),
]

# Found before anything runs.
AT_SUBMISSION: list[tuple[Program, str, type[PenstockError], str]] = [
    (function_with_a_lock, "holder", UnpicklableError, "'holder'.*lock.*in open"),
    (lambda_over_a_lock, "closure", UnpicklableError, "'key_by'.*lock.*in open"),
]


@pytest.mark.parametrize(
    ("program", "marker", "kind", "message"),
    RUNTIME + AT_SUBMISSION,
    ids=lambda value: value.__name__ if callable(value) and hasattr(value, "__code__") else "",
)
def test_one_clear_error(
    env: StreamExecutionEnvironment,
    program: Program,
    marker: str,
    kind: type[PenstockError],
    message: str,
) -> None:
    stream = program(env)

    with pytest.raises(PenstockError) as caught:
        list(stream.execute_and_collect())

    error = caught.value
    assert type(error) is kind
    assert re.search(message, str(error)), str(error)
    assert_names(error, marker)


def test_collected_record_with_a_lock(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).map(lambda n: threading.Lock())

    with pytest.raises(UnpicklableError, match=r"a record .*lock") as caught:
        list(stream.execute_and_collect())  # collected
    assert_names(caught.value, "collected")


def test_element_with_a_lock(env: StreamExecutionEnvironment) -> None:
    env.from_elements(threading.Lock()).print()  # element

    with pytest.raises(UnpicklableError, match=r"'Source: Collection Source'.*lock") as caught:
        env.execute()
    assert_names(caught.value, "element")


def test_parallelism_above_max(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 9).map(str).set_parallelism(5)  # too parallel
    stream.set_max_parallelism(4).print()

    with pytest.raises(
        InvalidProgramError, match="parallelism 5, above its max parallelism 4"
    ) as e:
        env.execute()
    assert_names(e.value, "too parallel")
    assert "raise the other with set_max_parallelism" in str(e.value)


def test_two_operators_with_one_uid(env: StreamExecutionEnvironment) -> None:
    first = env.from_sequence(1, 9).map(str).uid("same")  # first uid
    first.map(str).uid("same").print()  # second uid

    with pytest.raises(InvalidProgramError, match="uid 'same' is given to two operators") as e:
        env.execute()
    assert_names(e.value, "first uid")
    assert_names(e.value, "second uid")


def test_state_that_cannot_be_declared(env: StreamExecutionEnvironment) -> None:
    class TwoOfOneName(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("s", Types.INT()))
            runtime_context.get_state(ValueStateDescriptor("s", Types.STRING()))

        def process_element(self, value: Any, ctx: Any) -> Any:
            return None

    stream = env.from_elements(1).key_by(lambda n: n).process(TwoOfOneName())  # one name

    with pytest.raises(StateError, match="'s'") as caught:
        list(stream.execute_and_collect())
    assert_names(caught.value, "one name")


# Nothing is lost: a later, correct run of the job goes on


def _counting(key: Callable[[Any], Any], check: Callable[[int], Any]) -> Program:
    """Gives (key, number, how many so far)."""

    def program(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_collection(range(100)).map(check).map(lambda n: (key(n), n, 1)).key_by(0)
        return keyed.reduce(lambda before, now: (before[0], now[1], before[2] + 1))

    return program


def _raise_at_55(n: int) -> int:
    if n == 55:
        raise ValueError("cannot be 55")
    return n


GOOD = _counting(lambda n: n % 5, lambda n: n)
BROKEN = {
    "lambda": (_counting(lambda n: n % 5, _raise_at_55), "cannot be 55"),
    "key": (_counting(lambda n: [n] if n == 55 else n % 5, lambda n: n), "not hashable"),
    "type": (_counting(lambda n: n % 5, lambda n: "55" if n == 55 else n), "not all arguments"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_correct_run_goes_on(restartable_env: Any, collect_until_error: Any, kind: str) -> None:
    """50 records are committed when 55 fails; the second run has the rest, and exact counts."""
    broken, message = BROKEN[kind]

    first, error = collect_until_error(broken(restartable_env()))
    again, _ = collect_until_error(broken(restartable_env()))
    second = list(GOOD(restartable_env()).execute_and_collect())

    assert re.search(message, str(error))
    assert sorted(n for _, n, _ in first) == list(range(50))
    assert again == []
    assert sorted(n for _, n, _ in second) == list(range(50, 100))
    counts = sorted((key, count) for key, _, count in first + second)
    assert counts == [(key, count) for key in range(5) for count in range(1, 21)]
