"""Spark's errors, said shortly: what died, without the JVM's pile of frames."""

from __future__ import annotations

import re

from penstock.errors import EngineError, InvalidProgramError

_CAUSES = (
    (re.compile(r"Python worker exited unexpectedly"), "a Python worker died"),
    (re.compile(r"ExecutorLostFailure[^\n]*"), "an executor was lost"),
    (re.compile(r"Job \d+ cancelled[^\n]*"), "the Spark job was cancelled"),
    (re.compile(r"SparkContext was shut ?down|stopped SparkContext"), "Spark was shut down"),
)


# Before a worker has the plan; later ones are errors of an operator.
_MISSING_MODULE = re.compile(
    r"in load_plan\b.*^ModuleNotFoundError: (No module named '[^\n']*')", re.S | re.M
)
_PYTHON = re.compile(
    r"Traceback \(most recent call last\):.*?^(\w[\w.]*(?:: [^\n]*)?)$", re.S | re.M
)


def engine_error(error: BaseException) -> EngineError | InvalidProgramError:
    """What happened, in a sentence, with Spark's own words behind it."""
    text = str(error)
    if missing := _MISSING_MODULE.search(text):
        return InvalidProgramError.missing_module(missing[1])
    meanings = (meaning for pattern, meaning in _CAUSES if pattern.search(text))
    found = EngineError(f"{next(meanings, 'Spark could not run the epoch')}: {_first_line(text)}")
    found.details = text
    return found


def _first_line(text: str) -> str:
    lines = [line.strip(": ") for line in text.splitlines() if line.strip(": ")]
    # Not what the gateway was asked to do, but what became of it.
    lines = [line for line in lines if not line.startswith("An error occurred while calling")]
    if python := _PYTHON.search(text):
        lines = [python[1]]
    return lines[0][:500] if lines else "no reason given"
