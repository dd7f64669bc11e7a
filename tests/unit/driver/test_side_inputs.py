"""When the driver reads a side input again, and which files it keeps for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.datastream.side_input import SideInput
from penstock.driver.side_inputs import SideInputs
from penstock.storage.filesystem import LocalFileSystem


class Table:
    def __init__(self) -> None:
        self.reads = 0
        self.rows: list[Any] = [1]

    def __call__(self) -> list[Any]:
        self.reads += 1
        return list(self.rows)


def side_inputs(directory: Path, **sides: tuple[Table, int | None]) -> SideInputs:
    made = [
        SideInput(name, None, (), refresh, None, "here:1", table)
        for name, (table, refresh) in sides.items()
    ]
    return SideInputs(made, LocalFileSystem(), str(directory), 10)


def test_intervals(tmp_path: Path) -> None:
    once, often, always = Table(), Table(), Table()
    found = side_inputs(tmp_path, once=(once, None), often=(often, 100), always=(always, 0))
    reads = []
    for clock in (1000, 1000, 1099, 1100, 1150, 1199, 1200, 5000):
        found.at(clock)
        reads.append((once.reads, often.reads, always.reads))
    assert [r[0] for r in reads] == [1] * 8
    assert [r[1] for r in reads] == [1, 1, 1, 2, 2, 2, 3, 4]
    assert [r[2] for r in reads] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_clock_that_was_put_back_does_not_keep_an_old_table(tmp_path: Path) -> None:
    table = Table()
    found = side_inputs(tmp_path, table=(table, 100))
    for clock in (1000, 500, 550):
        found.at(clock)
    assert table.reads == 2


def test_files(tmp_path: Path) -> None:
    table = Table()
    (tmp_path / "left-over").write_bytes(b"")
    found = side_inputs(tmp_path, table=(table, 0))
    first = found.at(1)["table"]
    assert [str(path) for path in tmp_path.iterdir()] == [first]
    assert found.at(2)["table"] == first  # it is the same
    table.rows = [1, 2]
    second = found.at(3)["table"]
    assert sorted(map(str, tmp_path.iterdir())) == sorted([first, second])
    found.committed()
    assert [str(path) for path in tmp_path.iterdir()] == [second]
    status = found.status(13)["table"]
    assert (status.rows, status.read_at, status.age) == (2, 3, 10)
    assert status.bytes == Path(second).stat().st_size


def test_another_start_gives_files_other_names(tmp_path: Path) -> None:
    """Workers remember tables by the name of the file."""
    first = side_inputs(tmp_path, table=(Table(), None)).at(1)
    second = side_inputs(tmp_path, table=(Table(), None)).at(1)
    assert first != second
