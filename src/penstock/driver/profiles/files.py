"""A profile as files, in a directory for each job."""

from __future__ import annotations

import json
import os
import re
import threading

from penstock.common.local_paths import local_path
from penstock.driver.profiles.flame_graph import flame_graph
from penstock.driver.profiles.summary import Summary
from penstock.driver.profiles.text import profile_text
from penstock.errors import FileAccessError

DEFAULT_DIRECTORY = "penstock-profile"

_taken: set[str] = set()
_taking = threading.Lock()


def claim_directory(given: str | None, job_name: str) -> str:
    """The directory of a job's profile, made and seen to be writable before the job begins.

    Named like the job; those of the same name that this process has run before are told apart by a
    number. A profile of an earlier process is overwritten.
    """
    parent = local_path(given or DEFAULT_DIRECTORY, "profile directory")
    name = re.sub(r"[^\w.-]+", "-", job_name).strip("-.") or "job"
    path = os.path.join(os.path.abspath(parent), name)
    with _taking:
        found, number = path, 1
        while found in _taken:
            number += 1
            found = f"{path}-{number}"
        check_writable(found)
        _taken.add(found)
    return found


def check_writable(path: str) -> None:
    """Make the directory if need be."""
    probe = os.path.join(path, f".probe-{os.getpid()}")
    try:
        os.makedirs(path, exist_ok=True)
        with open(probe, "w"):
            pass
        os.remove(probe)
    except OSError as error:
        raise FileAccessError.unwritable(path, error) from None


def write_profile(directory: str, summary: Summary) -> str:
    """All files of a profile; its table."""
    text = profile_text(summary)
    folded = sorted(summary.folded.items())
    title = f"{summary.job}: {summary.worked_seconds:.2f} s of work in tasks"
    for name, content in (
        ("profile.txt", text),
        ("profile.folded", "".join(f"{';'.join(stack)} {micros}\n" for stack, micros in folded)),
        ("profile.json", json.dumps(summary.to_json(), indent=1) + "\n"),
        ("flame.svg", flame_graph(title, summary.folded)),
    ):
        _write(os.path.join(directory, name), content)
    return text


def _write(path: str, content: str) -> None:
    """In whole: the file of an earlier run may be open in a browser."""
    being_written = f"{path}.part"
    with open(being_written, "w", encoding="utf-8") as file:
        file.write(content)
    os.replace(being_written, path)
