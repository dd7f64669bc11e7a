"""`split(selector).select(names)`: a record to no output, to one or to several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import OutputSelector, RuntimeContext, StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, UserFunctionError

# What is about the API alone is the same on both executors.
locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


class ByDivisor(OutputSelector):
    """6 is both even and of three, 5 is neither."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._names = {2: "even", 3: "third"}

    def select(self, value: int) -> Iterable[str]:
        return (name for divisor, name in self._names.items() if value % divisor == 0)


def test_zero_one_or_several_outputs(env: StreamExecutionEnvironment) -> None:
    split = env.from_sequence(1, 12).split(ByDivisor())

    def tagged(name: str, *outputs: str) -> Any:
        return split.select(*outputs).map(lambda n: (name, n))

    stream = tagged("even", "even").union(
        tagged("third", "third"),
        tagged("either", "third", "even"),  # a record with both names comes once
        tagged("nobody", "never given"),
        split.map(lambda n: ("all", n)),
    )

    found: dict[str, list[int]] = {}
    for name, number in stream.execute_and_collect():
        found.setdefault(name, []).append(number)
    assert {name: sorted(numbers) for name, numbers in found.items()} == {
        "even": [2, 4, 6, 8, 10, 12],
        "third": [3, 6, 9, 12],
        "either": [2, 3, 4, 6, 8, 9, 10, 12],
        "all": list(range(1, 13)),
    }


@locally
def test_a_callable_and_a_single_name(env: StreamExecutionEnvironment) -> None:
    """A name by itself is a name, not a list of letters; a type goes on with the records."""
    numbers = env.from_collection([1, 200, 3], Types.INT())
    split = numbers.split(lambda n: "large" if n > 100 else ["small", "small"])

    small = split.select("small")

    assert small.get_type() == Types.INT()
    assert sorted(small.execute_and_collect()) == [1, 3]
    assert list(split.select("large").split(lambda n: ["x"]).select("x").execute_and_collect()) == [
        200
    ]


@locally
def test_of_a_keyed_stream(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_sequence(1, 6).key_by(lambda n: n % 2)
    split = keyed.split(lambda n: ["odd"] if n % 2 else [])

    assert sorted(split.select("odd").execute_and_collect()) == [1, 3, 5]


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        (lambda n: None, r"a name or names, \[\] for no output, got NoneType None"),
        (lambda n: 7, "a name or names"),
        (lambda n: ["even", None], "must be a string, got NoneType None"),
    ],
)
@locally
def test_no_names(env: StreamExecutionEnvironment, selector: Any, sentence: str) -> None:
    stream = env.from_elements(1).split(selector).select("even")

    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        list(stream.execute_and_collect())
    assert "operator 'Split'" in str(caught.value)
    assert "test_split.py:" in str(caught.value)


@locally
def test_an_error_in_the_selector(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(0).split(lambda n: [str(1 // n)]).select("1")

    with pytest.raises(UserFunctionError, match=r"'Split .*test_split\.py:.*ZeroDivisionError"):
        list(stream.execute_and_collect())


@locally
def test_refused_at_once(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1)
    with pytest.raises(InvalidArgumentError, match="split needs a callable or an OutputSelector"):
        stream.split(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="belongs in split"):
        stream.map(ByDivisor())  # type: ignore[arg-type]
    split = stream.split(ByDivisor())
    with pytest.raises(InvalidArgumentError, match="at least one name"):
        split.select()
    with pytest.raises(InvalidArgumentError, match="a non-empty string, got int 5"):
        split.select(5)  # type: ignore[arg-type]
