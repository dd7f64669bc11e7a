"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench import (
    columnar,
    epoch_cost,
    keyed_process,
    latency,
    machine,
    report,
    restart,
    savepoints,
    scaling,
    state_scale,
    timers,
    windows,
)
from bench.measure import ContenderFailed, Options, Report

_BENCHMARKS: dict[str, Callable[[Options], Report]] = {
    "keyed_process": keyed_process.measure,
    "windows": windows.measure,
    "columnar": columnar.measure,
    "timers": timers.measure,
    "epoch_cost": epoch_cost.measure,
    "latency": latency.measure,
    "state_scale": state_scale.measure,
    "restart": restart.measure,
    "savepoints": savepoints.measure,
    "scaling": scaling.measure,
}
_RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    size = "smoke" if args.smoke else "quick" if args.quick else "full" if args.full else "default"
    console = Console()
    about = machine.describe()
    console.print(", ".join(f"{key} {value}" for key, value in about.items()), style="dim")
    reports: list[Report] = []
    failed = False
    with console.status("") as status:
        for name in args.names or _BENCHMARKS:

            def say(text: str, name: str = name) -> None:
                status.update(f"{name}: {text}")

            try:
                quick = args.quick or args.smoke
                found = _BENCHMARKS[name](Options(quick, args.full, args.smoke, say))
            except ContenderFailed as error:
                failed = True
                console.print(f"[red]{name} failed[/red]\n{error}", highlight=False)
                continue
            reports.append(found)
            report.show(console, found)
            report.write(args.out, about, reports, size)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*_BENCHMARKS, []], help="which benchmarks; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller state")
    parser.add_argument(
        "--smoke", action="store_true", help="hardly any input: only whether it runs"
    )
    parser.add_argument("--full", action="store_true", help="also a state of several gigabytes")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="where results are written")
    return parser


if __name__ == "__main__":
    sys.exit(main())
