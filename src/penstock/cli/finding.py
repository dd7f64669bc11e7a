"""Finds the job that a user means."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.driver import registry
from penstock.driver.registry import JobEntry
from penstock.errors import JobNotFoundError


def running_job(wanted: str) -> JobEntry:
    """By its name, its job id or its run id; or by the beginning of one, if that is unique."""
    entries = registry.running()
    found = matching(wanted, entries)
    if not found:
        registry.bury_dead()
        if ended := matching(wanted, registry.ended()):
            raise JobNotFoundError.ended(wanted, ended[-1].outcome or "", _shown(entries))
        raise JobNotFoundError.of(wanted, _shown(entries))
    if len(found) > 1:
        raise JobNotFoundError.ambiguous(wanted, _shown(found))
    return found[0]


def known_job(wanted: str) -> JobEntry:
    """The same among jobs that run; if there is none, the last of those that have ended."""
    entries = registry.running()
    if matching(wanted, entries):
        return running_job(wanted)
    registry.bury_dead()
    ended = matching(wanted, registry.ended())
    if not ended:
        raise JobNotFoundError.of(wanted, _shown(entries))
    return _last_one(wanted, ended)


def _last_one(wanted: str, ended: Sequence[JobEntry]) -> JobEntry:
    """Several runs may have had a name: the last is meant. The beginning of several names is not
    a name."""
    by_id = [entry for entry in ended if wanted in (entry.run_id, entry.job_id)]
    if by_id or wanted == ended[-1].name:
        return (by_id or ended)[-1]
    last_runs = list({entry.job_id: entry for entry in ended}.values())
    if len(last_runs) > 1:
        raise JobNotFoundError.ambiguous(wanted, _shown(last_runs))
    return ended[-1]


def matching(wanted: str, entries: Sequence[JobEntry]) -> list[JobEntry]:
    """Those that are called so; else those one of whose names begins so."""
    exact = [entry for entry in entries if wanted in _names(entry)]
    if exact:
        return exact
    return [entry for entry in entries if any(name.startswith(wanted) for name in _names(entry))]


def _names(entry: JobEntry) -> tuple[str, str, str]:
    return entry.run_id, entry.job_id, entry.name


def _shown(entries: Sequence[JobEntry]) -> list[str]:
    return [f"{entry.run_id} ({entry.name!r}, job id {entry.job_id})" for entry in entries]
