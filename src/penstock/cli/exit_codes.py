"""What exit codes mean, and which error gives which. docs/guide/command-line.md has the table."""

from __future__ import annotations

from penstock import errors

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
CORRUPT = 5
CANCELLED = 6
INTERRUPTED = 130

# The first that fits.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.JobNotFoundError, NOT_FOUND),
    (errors.SnapshotNotFoundError, NOT_FOUND),
    (errors.CheckpointCorruptError, CORRUPT),
    (errors.CheckpointFormatError, REFUSED),
    (errors.CheckpointMismatchError, REFUSED),
    (errors.LeaseHeldError, REFUSED),
    (errors.UntrustedSnapshotError, REFUSED),
    (errors.UnsupportedFeatureError, REFUSED),
    (errors.JobCancelledError, CANCELLED),
)


def code_of(error: BaseException) -> int:
    """For an error of a command of ours."""
    if isinstance(error, errors.RemoteJobError):
        raised = getattr(errors, error.type_name, errors.PenstockError)
        return USAGE if issubclass(raised, errors.InvalidArgumentError) else _code_of_type(raised)
    if isinstance(error, errors.InvalidArgumentError):
        return USAGE
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return _code_of_type(type(error))


def code_of_program(error: BaseException) -> int:
    """For what a user's program raised: there, a wrong argument is not one of the command's."""
    return _code_of_type(type(error))


def _code_of_type(raised: type[BaseException]) -> int:
    return next((code for type_, code in _CODES if issubclass(raised, type_)), FAILED)
