"""project: some fields of a tuple, in another order."""

from __future__ import annotations

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment

_TYPE = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])


def test_project(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([(1, "a", 0.5), (2, "b", 1.5)], _TYPE).project(2, 0)

    assert stream.get_type() == Types.TUPLE([Types.DOUBLE(), Types.INT()])
    assert sorted(stream.execute_and_collect()) == [(0.5, 1), (1.5, 2)]
