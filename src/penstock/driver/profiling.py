"""Has a job profiled, if its settings say so, and its profile written when it ends."""

from __future__ import annotations

import logging

from penstock import launch, options
from penstock.common.configuration import Configuration
from penstock.driver.epoch_loop import EpochLoop
from penstock.driver.epoch_report import EpochReport
from penstock.driver.profiles.collected import CollectedProfile
from penstock.driver.profiles.files import claim_directory, write_profile
from penstock.driver.profiles.summary import summary_of
from penstock.errors import InvalidArgumentError
from penstock.runtime.epoch import Acknowledgement

_log = logging.getLogger("penstock")


def sampling_seconds(configuration: Configuration) -> float:
    """Between two looks at a task; 0 if the job is not profiled."""
    if not configuration.get(options.PROFILE):
        return 0.0
    millis = configuration.get(options.PROFILE_INTERVAL)
    if millis < 1:
        raise InvalidArgumentError.of(options.PROFILE_INTERVAL.key, "at least 1 ms", millis)
    return millis / 1000


class Profiling:
    """Of one job. Does nothing at all if the job is not profiled."""

    def __init__(self, configuration: Configuration, job_name: str) -> None:
        self._interval = sampling_seconds(configuration)
        self._configuration = configuration
        self._job_name = job_name
        self._directory = ""
        self._collected: CollectedProfile | None = None
        self._tell = launch.current().profiled

    def begin(self) -> None:
        """Before anything is run: whether there is a place to write to."""
        if self._interval:
            given = self._configuration.get(options.PROFILE_DIR)
            self._directory = claim_directory(given, self._job_name)

    def attach(self, loop: EpochLoop) -> None:
        """Hear of the loop's epochs."""
        if self._interval:
            in_turn = self._configuration.get(options.EXECUTOR) == "local"
            self._collected = CollectedProfile(loop.plan, in_turn, self._interval)
            loop.acknowledged = self._acknowledged

    def _acknowledged(self, acknowledgements: list[Acknowledgement], seconds: float) -> None:
        try:
            if self._collected is not None:
                self._collected.acknowledged(acknowledgements, seconds)
        except Exception:  # the epoch itself is not to suffer by it
            _log.exception("the profile of job %s misses an epoch", self._job_name)

    def committed(self, report: EpochReport) -> None:
        if self._collected is not None:
            self._collected.committed(report)

    def end(self) -> None:
        """The job has ended, however it did. That a profile cannot be written changes nothing."""
        collected, self._collected = self._collected, None
        if collected is None:
            return
        try:
            text = write_profile(self._directory, summary_of(collected))
        except Exception as error:
            _log.warning("the profile of job %s cannot be written: %s", self._job_name, error)
            return
        _log.info("the profile of job %s is in %s", self._job_name, self._directory)
        if self._tell is not None:
            self._tell(self._directory, text)
