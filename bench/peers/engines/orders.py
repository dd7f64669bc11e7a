"""What contenders read from their order. Standard library only.

An order has: `program`; `inputs` and `schemas` by stream; `files`, how many of each; `cold_files`,
how many of these warm up; `files_per_epoch`; `mark`, the time of the first answer that is behind
them; `rows_answered`, how many answers there must be; `position_of` and `weight_of`, what a probe
reads from an answer; `flink`, `bytewax`, `pathway`, the program in their APIs; `scratch`, a
directory that is empty at first; and the contender's own params. If there is a `pyflink`, PyFlink
runs that instead of `flink`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers.probe import Probe


def called(name: str) -> Any:
    """What ``module:name`` stands for."""
    module, attribute = name.split(":")
    return getattr(import_module(module), attribute)


def answers_of(params: dict[str, Any]) -> tuple[int, Any, Any]:
    """Mark, and the functions that a probe needs."""
    return params["mark"], called(params["position_of"]), called(params["weight_of"])


def probe_of(params: dict[str, Any]) -> Probe:
    return Probe(params["scratch"], *answers_of(params))


def paths_in(params: dict[str, Any], stream: str, suffix: str = ".parquet") -> list[Path]:
    """The files of an input, in the order of their time."""
    directory = Path(params["inputs"][stream])
    return [directory / f"f{number:04d}{suffix}" for number in range(params["files"])]
