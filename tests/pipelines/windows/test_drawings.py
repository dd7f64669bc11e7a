"""The notation in which the tests of windows are written."""

from __future__ import annotations

import pytest
from drawn_runs import sequences
from drawn_time import END, MARK, TICK, Event, Output, late, parse

from penstock.datastream.window import CountWindow, GlobalWindow, TimeWindow

DRAWN = """
    time        -5   0    5    10
    a                1-2--3|-4       ; a remark
    a fires     [--------)           1 2
    b gives                          12
    b              5
    b late         5
    clock                 |
    end
    a fires  *                       all of it
    a fires  #3
"""


def test_rows_and_columns() -> None:
    first, second, clock, end = parse(DRAWN).rows
    assert first.events == (
        Event("a", "1", 0),
        Event("a", "2", 2000),
        Event("a", "3", 5000),
        Event(MARK, "", 5999),
        Event("a", "4", 8000),
    )
    assert first.outputs == (
        Output("a", "fires", TimeWindow(-5000, 4000), "1 2"),
        Output("b", "gives", None, "12"),
    )
    assert second.events == (Event("b", "5", -2000),)
    assert second.outputs == (late("b", "5", -2000),)
    assert clock.events == (Event(TICK, "", 5000),)
    assert end.events == (END,)
    assert end.outputs == (
        Output("a", "fires", GlobalWindow(), "all of it"),
        Output("a", "fires", CountWindow(3), ""),
    )


def test_what_was_found_is_drawn_alike() -> None:
    drawing = parse(DRAWN)
    ruler = DRAWN.strip("\n").splitlines()[0]
    assert str(parse(f"{ruler}\n{drawing}")) == str(drawing)
    assert drawing.with_outputs([list(row.outputs) for row in drawing.rows]) == drawing


def test_another_result_is_another_drawing() -> None:
    drawing = parse(DRAWN)
    found = [list(row.outputs) for row in drawing.rows]
    found[0][0] = found[0][0]._replace(window=TimeWindow(-5000, 5000))
    assert str(drawing.with_outputs(found)) != str(drawing)


def test_only_the_order_of_a_key_counts() -> None:
    one, other, third = (Output(key, "gives", None, text) for key, text in ("a1", "b2", "a3"))
    assert sequences([one, other, third]) == sequences([other, one, third])
    assert sequences([one, other, third]) != sequences([third, other, one])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time 0    6\nend", "out of place"),
        ("a 1\nend", "not a ruler"),
        ("time 0\na    1", "must finish with `end`"),
        ("time 0\na    ?\nend", "means nothing"),
    ],
)
def test_nonsense(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)
