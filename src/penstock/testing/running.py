"""Run a program and get a stream's records as a list."""

from __future__ import annotations

from typing import Any

from penstock import options
from penstock.common.configuration import Configuration
from penstock.datastream import DataStream


def run_local(stream: DataStream, job_name: str | None = None) -> list[Any]:
    """Run the stream's program on the local executor; the stream's records, in order of arrival.

    Sinks that the program has besides run too. The environment is left as it was.
    """
    env = stream.get_execution_environment()
    before = env._configuration.get(options.EXECUTOR)
    env.configure(Configuration().set(options.EXECUTOR, "local"))
    try:
        return collect(stream, job_name)
    finally:
        env.configure(Configuration().set(options.EXECUTOR, before))


def collect(stream: DataStream, job_name: str | None = None) -> list[Any]:
    """Run the stream's program where its environment says; the stream's records."""
    return list(stream.execute_and_collect(job_name))
