"""print: a line per record on the driver's standard output, in Flink's format."""

from __future__ import annotations

import pytest

from penstock.common import Row, Types
from penstock.datastream import StreamExecutionEnvironment


def test_print(env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    """`identifier:subtask> value`; without what is not given, or of which there is only one."""
    numbers = env.from_sequence(1, 4)  # 1 and 2 in the first subtask, 3 and 4 in the second
    numbers.print()
    numbers.print("n")
    rows = env.from_collection([("a", None)], Types.ROW([Types.STRING(), Types.INT()]))
    rows.print().set_parallelism(1)
    rows.map(lambda row: {"k": [row[0], Row(1, "x")]}).print("d").set_parallelism(1)

    env.execute()

    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(
        [
            "1> 1", "1> 2", "2> 3", "2> 4",
            "n:1> 1", "n:1> 2", "n:2> 3", "n:2> 4",
            "+I[a,None]",
            "d> {'k': ['a', <Row(1, 'x')>]}",
        ]
    )  # fmt: skip
    # In order within a subtask.
    assert [line for line in lines if line.startswith("2> ")] == ["2> 3", "2> 4"]
