"""Side outputs: `yield tag, value` as in PyFlink, and `ctx.output` as in Java."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.common import Types
from penstock.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)

LATE = OutputTag("late", Types.STRING())
SMALL = OutputTag("small", Types.BYTE())
UNREAD = OutputTag("unread")


class Sorter(ProcessFunction):
    """To zero, one or several outputs."""

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value == 0:
            return
        yield value
        if value < 3:
            yield LATE, f"late {value}"
        if value > 3:
            ctx.output(SMALL, value * 100)
            ctx.output(UNREAD, value)


def test_side_outputs(env: StreamExecutionEnvironment) -> None:
    main = env.from_elements(0, 1, 2, 3, 4).process(Sorter(), output_type=Types.INT())
    late = main.get_side_output(LATE).map(lambda text: ("late", text))
    small = main.get_side_output(SMALL).map(lambda n: ("small", n))

    stream = main.map(lambda n: ("main", n)).union(late, small)

    assert sorted(stream.execute_and_collect(), key=repr) == [
        ("late", "late 1"),
        ("late", "late 2"),
        ("main", 1),
        ("main", 2),
        ("main", 3),
        ("main", 4),
        ("small", -112),  # 400 as a byte
    ]


class OddOut(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value % 2:
            yield LATE, f"{ctx.get_current_key()}:{value}"
        else:
            yield value


def test_side_output_of_a_keyed_process_function(env: StreamExecutionEnvironment) -> None:
    """The main output need not be read; the side output may be keyed again."""
    main = env.from_sequence(1, 6).key_by(lambda n: n % 3).process(OddOut())

    counted = (
        main.get_side_output(LATE)
        .key_by(lambda text: "all")
        .map_with_state(lambda text, n: ((text, (n or 0) + 1), (n or 0) + 1))
    )

    found = list(counted.execute_and_collect())
    assert sorted(text for text, _ in found) == ["0:3", "1:1", "2:5"]
    assert sorted(n for _, n in found) == [1, 2, 3]
