"""All programs, those of other benchmarks included."""

from __future__ import annotations

from bench.nexmark import peers as nexmark
from bench.peers import sensor_programs
from bench.peers.program import Program


def all_programs() -> dict[str, Program]:
    return {program.name: program for program in (*sensor_programs.PROGRAMS, *nexmark.PROGRAMS)}
