"""How much epochs read from Python sources, as the configuration says."""

from __future__ import annotations

from penstock import options
from penstock.common.configuration import Configuration
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.driver.epoch_length import EpochLength, LengthPolicy
from penstock.errors import InvalidArgumentError

_MOST_RECORDS = 500_000
_MOST_RECORDS_ADAPTED = 5_000_000


def adapts_length(configuration: Configuration, mode: CheckpointingMode) -> bool:
    """Not if records come at most once: then the second try at an epoch, which drops what it reads,
    must not read less than the first."""
    return mode is not CheckpointingMode.AT_MOST_ONCE and configuration.get(options.EPOCH_ADAPTIVE)


def most_records(configuration: Configuration, adapted: bool) -> int:
    """What a subtask reads at most."""
    most = configuration.get(options.MAX_RECORDS_PER_EPOCH)
    if most is not None:
        return most
    return _MOST_RECORDS_ADAPTED if adapted else _MOST_RECORDS


def epoch_length(configuration: Configuration) -> EpochLength:
    share = configuration.get(options.EPOCH_FIXED_SHARE)
    if not 0 < share < 1:
        raise InvalidArgumentError(
            f"{options.EPOCH_FIXED_SHARE.key} is {share:g}; give a share of an epoch, more than 0 "
            "and less than 1, such as 0.1"
        )
    longest = configuration.get(options.EPOCH_LONGEST)
    if longest <= 0:
        raise InvalidArgumentError(
            f"{options.EPOCH_LONGEST.key} is {longest} ms; give a time that an epoch may take, or "
            f"set {options.EPOCH_ADAPTIVE.key} to false"
        )
    return EpochLength(LengthPolicy(share, longest / 1000, most_records(configuration, True)))
