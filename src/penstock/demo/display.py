"""How the demo looks: a live table in a terminal, a line now and then elsewhere."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.demo.board import Average, Board

_WARM, _HOT = 26.0, 30.0
_BAR = 24


def live_view(board: Board) -> RenderableType:
    """Everything at a glance, in 80 columns and 20 lines."""
    averages = board.averages()
    alerts = board.alerts_by_sensor()
    half = (len(averages) + 1) // 2
    tables = [_table(part, alerts) for part in (averages[:half], averages[half:]) if part]
    return Group(
        Text("Sensors: state per key, checkpointed with every epoch", style="bold"),
        _side_by_side(tables),
        _alert_lines(board),
        Text(_numbers(board), style="cyan"),
        _progress(board),
    )


def _side_by_side(tables: list[Table]) -> Table:
    grid = Table.grid(padding=(0, 3))
    grid.add_row(*tables)
    return grid


def _table(averages: list[Average], alerts: dict[str, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("sensor")
    for title in ("last", "mean", "count", "alerts"):
        table.add_column(title, justify="right", min_width=5)
    for average in averages:
        count = alerts.get(average.sensor, 0)
        table.add_row(
            average.sensor,
            Text(f"{average.temperature:.1f}°", style=_colour(average.temperature)),
            f"{average.mean:.2f}°",
            f"{average.readings:,}",
            Text(str(count), style="red" if count else "dim"),
        )
    return table


def _colour(temperature: float) -> str:
    return "bold red" if temperature > _HOT else "yellow" if temperature > _WARM else "green"


def _alert_lines(board: Board) -> Text:
    newest = list(board.newest_alerts)
    lines = [f"! {sensor} {what} (reading {number:,})" for sensor, number, what in newest]
    return Text("\n".join([*lines, *[""] * (3 - len(lines))]), style="red")


def _numbers(board: Board) -> str:
    epoch = board.last_epoch()
    if epoch is None:
        return ""
    return (
        f"epoch {epoch.epoch:,}   {board.rate():,.0f} records/s   {epoch.seconds * 1000:,.0f} ms "
        f"per epoch   {epoch.state_bytes:,} bytes checkpointed"
    )


def _progress(board: Board) -> Table:
    done = min(board.readings(), board.total)
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(total=board.total, completed=done, width=44),
        f"{done:,} of {board.total:,} readings",
    )
    return line


def plain_line(board: Board) -> str:
    """The same in one line, for a file or a pipe."""
    done = min(board.readings(), board.total)
    filled = _BAR * done // max(board.total, 1)
    hottest = max(board.averages(), key=lambda average: average.temperature, default=None)
    heat = f"   hottest {hottest.sensor} {hottest.temperature:.1f}°" if hottest else ""
    bar = "#" * filled + "." * (_BAR - filled)
    return f"[{bar}] {done:,} readings   {_numbers(board)}{heat}   alerts {len(board.alerts)}"
