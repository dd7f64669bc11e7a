"""The peers' virtual environments: one for each file in `requirements/`, made when it is needed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_REQUIREMENTS = Path(__file__).parent / "requirements"
_STAMP = "made-from"
_LOG_LINES = 6
_TIMEOUT = 1800.0


class NotInstalled(RuntimeError):
    """A peer could not be had; the others are measured all the same."""


_missing: dict[str, NotInstalled] = {}
"""Tried once in a run: it takes minutes."""


def python_of(name: str | None) -> str:
    """The interpreter of the environment, made anew if its requirements are others now."""
    if name is None:
        return sys.executable
    directory = _ROOT / ".bench" / "venvs" / name
    python = directory / "bin" / "python"
    requirements = _REQUIREMENTS / f"{name}.txt"
    made_from = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = directory / _STAMP
    if name in _missing:
        raise _missing[name]
    if not stamp.exists() or stamp.read_text() != made_from:
        try:
            _make(directory, python, requirements)
        except NotInstalled as error:
            _missing[name] = error
            raise
        stamp.write_text(made_from)
    return str(python)


def versions_in(python: str, packages: list[str]) -> dict[str, str]:
    """Of those packages that are there."""
    program = (
        "import importlib.metadata as m, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, m.version(name))\n"
        "    except m.PackageNotFoundError: pass"
    )
    answer = subprocess.run(
        [python, "-c", program, *packages], capture_output=True, text=True, check=True
    )
    return dict(line.split() for line in answer.stdout.splitlines())


def _make(directory: Path, python: Path, requirements: Path) -> None:
    venv.create(directory, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, "-r", str(requirements)],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"installing {requirements.name} took too long") from None
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-_LOG_LINES:])
        raise NotInstalled(f"{requirements.name} could not be installed:\n{said}")
