"""Every exception type that Penstock raises on purpose.

Each one is also a built-in exception, so that ``except ValueError`` keeps working for users who
do not know us. Messages of a standard form come from named constructors and end with what to do.
Errors cross process borders, so all of them survive pickling. This package imports nothing of ours.
"""

from __future__ import annotations

from penstock.errors._base import (
    FileAccessError,
    InvalidArgumentError,
    MalformedRecordError,
    PenstockError,
    RecordTooLargeError,
    TypeMismatchError,
    short_repr,
)
from penstock.errors._checkpoints import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointUnwritableError,
    LeaseHeldError,
    SavepointError,
    SinkCommitError,
    SnapshotNotFoundError,
    UntrustedSnapshotError,
)
from penstock.errors._functions import (
    AsyncTimeoutError,
    RaisedInFunction,
    UserFunctionError,
    is_users_file,
    user_line,
)
from penstock.errors._jobs import (
    EngineError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    JobUnreachableError,
    ReadOnlyStateError,
    RemoteJobError,
    SideInputError,
    StateError,
    StoreLostError,
)
from penstock.errors._programs import (
    NO_JAVA,
    InvalidKeyError,
    InvalidProgramError,
    MissingPackageError,
    RefusedImportError,
    RefusedNameError,
    UnpicklableError,
    UnsupportedFeatureError,
)

__all__ = [
    "NO_JAVA",
    "AsyncTimeoutError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointFormatError",
    "CheckpointMismatchError",
    "CheckpointUnwritableError",
    "EngineError",
    "FileAccessError",
    "InvalidArgumentError",
    "InvalidKeyError",
    "InvalidProgramError",
    "JobCancelledError",
    "JobFailedError",
    "JobNotFoundError",
    "JobUnreachableError",
    "LeaseHeldError",
    "MalformedRecordError",
    "MissingPackageError",
    "PenstockError",
    "RaisedInFunction",
    "ReadOnlyStateError",
    "RecordTooLargeError",
    "RefusedImportError",
    "RefusedNameError",
    "RemoteJobError",
    "SavepointError",
    "SideInputError",
    "SinkCommitError",
    "SnapshotNotFoundError",
    "StateError",
    "StoreLostError",
    "TypeMismatchError",
    "UnpicklableError",
    "UnsupportedFeatureError",
    "UntrustedSnapshotError",
    "UserFunctionError",
    "is_users_file",
    "short_repr",
    "user_line",
]

for _name in __all__:
    # As users know them, in tracebacks and pickles.
    if isinstance(_found := globals()[_name], type):
        _found.__module__ = __name__
