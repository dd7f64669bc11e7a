"""A job's Python code as archives to be sent to workers, each called after what is in it."""

from __future__ import annotations

import atexit
import functools
import importlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xxhash import xxh3_64

from penstock.driver.dependencies import Requirements
from penstock.errors import InvalidProgramError

_log = logging.getLogger("penstock")

_LARGE = 100 << 20
_BESIDE = "beside"
_ERROR_LINES = 8


@dataclass(frozen=True)
class Bundle:
    """A zip file on the driver."""

    archive: str
    name: str
    """What it is called once it is unpacked."""
    imports: tuple[str, ...]
    """The parts of it to import from; the empty string is all of it."""


@functools.cache
def staging() -> str:
    """A directory of this process, which goes with it."""
    directory = tempfile.mkdtemp(prefix="penstock-code-")
    atexit.register(shutil.rmtree, directory, True)
    return directory


def code_bundle(beside: Sequence[str], files: Sequence[str]) -> Bundle | None:
    """The modules beside the program, and files that were added; None if there are none."""
    entries: list[tuple[str, str]] = []
    imports = [_BESIDE] if beside else []
    for path in beside:
        entries += _below(path, os.path.join(_BESIDE, os.path.basename(path)))
    for number, path in enumerate(files):
        if os.path.isdir(path):
            entries += _below(path, str(number))
            imports.append(str(number))
        else:
            name = os.path.join(str(number), os.path.basename(path))
            entries.append((name, path))
            imports.append(str(number) if path.endswith(".py") else name)
    return _zipped(entries, tuple(imports)) if entries else None


def requirements_bundle(requirements: Requirements) -> Bundle | None:
    """The installed packages; None if there are none."""
    entries = list(_below(installed(requirements), ""))
    return _zipped(entries, ("",)) if entries else None


@functools.cache
def installed(requirements: Requirements) -> str:
    """A directory with the packages in it. Installed once in the life of a process."""
    directory = tempfile.mkdtemp(prefix="requirements-", dir=staging())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--target", directory, "-r", requirements.path]
    if requirements.cache is not None:
        command += ["--no-index", "--find-links", requirements.cache]
    _log.info("installing %s", requirements.path)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-_ERROR_LINES:])
        raise InvalidProgramError.cannot_install(requirements.path, said)
    return directory


def make_importable(files: Sequence[str]) -> None:
    """Let this process import them, too: it calls sources and sinks, and unpickles results."""
    for file in files:
        place = file
        if file.endswith(".py"):
            place = os.path.join(staging(), xxh3_64(file.encode()).hexdigest())
            os.makedirs(place, exist_ok=True)
            shutil.copy(file, place)
        _put_on_path(1, place)  # after the program's own directory


def make_packages_importable(requirements: Requirements) -> None:
    """The same; but what this process has got already comes first."""
    _put_on_path(len(sys.path), installed(requirements))


def _put_on_path(position: int, place: str) -> None:
    if place not in sys.path:
        sys.path.insert(position, place)
        importlib.invalidate_caches()


def _below(path: str, name: str) -> Iterator[tuple[str, str]]:
    """All files, with their names in the archive; what Python compiled is left out."""
    if os.path.isfile(path):
        yield name, path
    for parent, directories, files in os.walk(path):
        directories[:] = sorted(d for d in directories if d != "__pycache__")
        for file in sorted(files):
            full = os.path.join(parent, file)
            yield os.path.join(name, os.path.relpath(full, path)), full


def _zipped(entries: list[tuple[str, str]], imports: tuple[str, ...]) -> Bundle:
    size = sum(os.path.getsize(path) for _, path in entries)
    if size > _LARGE:
        _log.warning("%d MB of code are sent to every worker", size >> 20)
    digest = xxh3_64(repr(imports).encode())
    for name, path in entries:
        with open(path, "rb") as file:
            digest.update(f"{name}:{os.path.getsize(path)}:".encode())
            while part := file.read(1 << 20):
                digest.update(part)
    name = f"penstock-{digest.hexdigest()}"
    archive = os.path.join(staging(), f"{name}.zip")
    if not os.path.exists(archive):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            for inside, path in entries:
                out.write(path, inside)
    return Bundle(archive, name, imports)
