"""Which job a program is, in the directory of its checkpoints."""

from __future__ import annotations

import os
import re
import sys

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.digests import text_digest
from penstock.errors import InvalidArgumentError

_LONGEST_NAME = 100
_LONGEST = 200  # file names end at 255, and more is appended


def job_id_of(configuration: Configuration, given_name: str | None) -> str:
    """The configured id, else one made of the job's name, or of the program if it has none.

    Two jobs must not take one another's checkpoints for their own: a name that is not fit for a
    directory gets a digest of itself, and jobs without a name one of the main script's path.
    """
    if job_id := configuration.get(options.JOB_ID):
        if len(job_id) > _LONGEST:
            raise InvalidArgumentError.of(
                options.JOB_ID.key, f"at most {_LONGEST} characters long", job_id
            )
        return job_id
    name = given_name or configuration.get(options.PIPELINE_NAME)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:_LONGEST_NAME].strip("-.")
    identity = name
    if not given_name and not configuration.contains(options.PIPELINE_NAME):
        identity = f"{name} of {_program()}"
    if plain == identity:
        return plain
    return f"{plain or 'job'}-{text_digest(identity)[:8]}"


def _program() -> str:
    """The path of the main script; without one, as in a notebook, the working directory."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.realpath(path or os.getcwd())
