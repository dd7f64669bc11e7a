"""The demo's program on the local executor, its display, and the command line."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock import __version__, options
from penstock.cli import main
from penstock.common.configuration import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import InitContext, Split
from penstock.demo.board import BOARDS, Average, Board
from penstock.demo.display import live_view, plain_line
from penstock.demo.job import SENSORS, SensorReadings, TemperatureAlert, build, reading
from penstock.demo.run import DemoSettings, run_demo
from penstock.errors import InvalidArgumentError
from penstock.testing import KeyedOperatorHarness

READINGS = 4000


def local_environment() -> StreamExecutionEnvironment:
    settings = Configuration().set(options.EXECUTOR, "local").set(options.PARALLELISM, 2)
    return StreamExecutionEnvironment.get_execution_environment(settings)


def test_counts_every_reading_once() -> None:
    board = BOARDS["test"] = Board(READINGS)
    env = local_environment()
    build(env, READINGS, 1e6, "test")
    env.execute("demo")
    assert [average.readings for average in board.averages()] == [READINGS // SENSORS] * SENSORS
    assert board.miscounted() == []
    means: dict[str, float] = defaultdict(float)
    for sensor, _, temperature in map(reading, range(READINGS)):
        means[sensor] += temperature * SENSORS / READINGS
    for average in board.averages():
        assert average.mean == pytest.approx(means[average.sensor])


def test_alerts_for_heat_once_and_for_jumps() -> None:
    harness = KeyedOperatorHarness(TemperatureAlert(), key_selector=0)
    temperatures = [20.0, 24.0, 29.9, 30.1, 29.5, 30.2, 28.9, 30.5, 20.0]
    for number, temperature in enumerate(temperatures, 1):
        harness.process(("s01", number, temperature))
    assert [(number, what) for _, number, what in harness.outputs()] == [
        (2, "jumped by 4.0°"),
        (3, "jumped by 5.9°"),
        (4, "rose above 30°"),
        (8, "rose above 30°"),
    ]


def test_a_pause_is_not_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("penstock.demo.job.time.time", lambda: now)
    reader = SensorReadings(count=1_000_000, rate=100).create_reader(
        InitContext("job", "sensors", 0, 1, 0, "a")
    )
    split = Split("0", (0, 1))
    first = reader.read(split, (0, None), 10_000)
    now += 1
    second = reader.read(split, first.position, 10_000)
    assert [len(first.records), len(second.records)] == [0, 100]
    now += 3600
    assert len(reader.read(split, second.position, 10_000).records) == 200


def full_board() -> Board:
    board = Board(150_000)
    for sensor in range(SENSORS):
        board.average(Average(f"s{sensor + 1:02d}", 7500, 21.5 + sensor / 2, 22.25, 7500))
    for number in range(5):
        board.alert("s07", number, "jumped by 4.2°")
        board.alert("s07", number, "jumped by 4.2°")
    board.epoch(12, 0.15, 750, 4510)
    return board


def test_fits_a_small_terminal() -> None:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(live_view(full_board()))
    text = captured.get()
    assert len(text.splitlines()) <= 20
    assert "s20" in text
    assert "150,000 of 150,000 readings" in text
    assert "4,510 bytes checkpointed" in text


def test_a_plain_line() -> None:
    line = plain_line(full_board())
    assert line.startswith("[########################] 150,000 readings   epoch 12")
    assert line.endswith("hottest s20 31.0°   alerts 5")


def test_the_whole_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    settings = DemoSettings(seconds=1, rate=2000, checkpoint_dir=str(tmp_path), fresh=True)
    assert run_demo(settings, Console(highlight=False)) == 0
    out = capsys.readouterr().out
    assert "Exactly once: 2,000 readings" in out
    assert "Checkpointed: epochs 0 to" in out


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"penstock {__version__}\n")
    assert "sensor job on local Spark" in out


@pytest.mark.parametrize("arguments", [["demo", "--rate", "0"], ["demo", "--seconds", "x"], ["x"]])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


def test_errors_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: Any) -> int:
        raise InvalidArgumentError("the rate is odd")

    monkeypatch.setattr("penstock.demo.run.run_demo", fail)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "penstock: the rate is odd\n"
