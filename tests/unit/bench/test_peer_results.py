"""Tables and plots of the comparison with peers."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bench.peers import plots, tables
from bench.peers.expected import Expected
from bench.peers.program import Program, Wanted
from bench.peers.rounds import Measured

_PROGRAM = Program(
    "count",
    "a keyed count",
    lambda files, scale: {},
    lambda directories, files: Expected(0, 0),
    {},
    {},
    goals=(Wanted("bytewax-2", 2), Wanted("bare", 1)),
)
_SECTION = tables.Section(
    {"cores": "2"},
    "2 rounds",
    {
        "bare": Measured(1000, [200.0, 100.0]),
        "penstock": Measured(1000, [100.0, 80.0]),
        "bytewax-2": Measured(1000, [25.0, 20.0]),
        "pyflink-thread": Measured(problem="NotInstalled: failed\nmuch more\nno such package"),
    },
)


def test_the_table_has_ratios_goals_and_who_failed() -> None:
    text = tables.markdown([_PROGRAM], {"count": _SECTION})
    assert "| count: penstock / bytewax-2 | 4 | ≥ 2 | met |" in text
    assert "| count: penstock / bare | 0.65 | ≥ 1 | **not met** |" in text
    assert "| Bytewax, 2 processes | 4 | 4–4 | 22 | 1,000 | 2 |" in text
    assert "- PyFlink, thread mode: NotInstalled: failed … no such package\n" in text
    assert "2 rounds; cores 2." in text


def test_the_data_has_every_run(tmp_path: Path) -> None:
    tables.write(tmp_path, [_PROGRAM], {"count": _SECTION})
    data = json.loads((tmp_path / "peers.json").read_text())["count"]
    assert data["contenders"]["bare"]["rates"] == [200.0, 100.0]
    assert data["ratios"]["by"]["bytewax-2"] == 4


def test_what_an_earlier_run_found_is_there_for_the_next(tmp_path: Path) -> None:
    assert tables.earlier(tmp_path) == {}
    tables.write(tmp_path, [_PROGRAM], {"count": _SECTION})
    assert tables.earlier(tmp_path) == {"count": _SECTION}


def test_rounds_of_a_later_run_are_added() -> None:
    later = tables.Section(
        {"cores": "2", "load": "0"},
        "1 round",
        {"penstock": Measured(900, [90.0], [{"files": 3}]), "bytewax-1": Measured(900, [30.0])},
    )
    both = _SECTION.with_more(later)
    assert both.rates == {
        "bare": [200.0, 100.0],
        "penstock": [100.0, 80.0, 90.0],
        "bytewax-2": [25.0, 20.0],
        "pyflink-thread": [],
        "bytewax-1": [30.0],
    }
    assert both.found["penstock"].rows == 900
    assert both.found["pyflink-thread"].problem == _SECTION.found["pyflink-thread"].problem
    assert (both.about, both.size) == ({"cores": "2", "load": "0"}, "2 rounds, then 1 round")
    assert tables.goals_of(_PROGRAM, both)[1].measured == 90 / 150
    assert _SECTION.rates["penstock"] == [100.0, 80.0]


def test_in_a_plot_the_same_factor_is_the_same_length() -> None:
    bars = [plots.Bar(f"a & {rate}", rate, rate, rate) for rate in (1000.0, 20_000.0, 400_000.0)]
    picture = ET.fromstring(plots.svg("rates", bars))
    boxes = picture.findall("{http://www.w3.org/2000/svg}rect")[1:]
    quickest, middle, slowest = (float(box.attrib["width"]) for box in boxes)
    assert quickest - middle == pytest.approx(middle - slowest, abs=0.3)
    assert quickest > middle > slowest


def test_a_plot_of_one_contender() -> None:
    ET.fromstring(plots.svg("rates", [plots.Bar("alone", 10.0, 10.0, 10.0)]))
