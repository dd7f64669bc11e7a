"""Errors: built-in kinds, messages that help, and pickling."""

import inspect
import pickle

import pytest

from penstock import errors
from penstock.errors import (
    AsyncTimeoutError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointUnwritableError,
    EngineError,
    FileAccessError,
    InvalidArgumentError,
    InvalidKeyError,
    InvalidProgramError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    JobUnreachableError,
    LeaseHeldError,
    MalformedRecordError,
    MissingPackageError,
    PenstockError,
    RaisedInFunction,
    ReadOnlyStateError,
    RecordTooLargeError,
    RefusedImportError,
    RefusedNameError,
    RemoteJobError,
    SavepointError,
    SideInputError,
    SinkCommitError,
    SnapshotNotFoundError,
    StateError,
    StoreLostError,
    TypeMismatchError,
    UnpicklableError,
    UnsupportedFeatureError,
    UntrustedSnapshotError,
    UserFunctionError,
)


def user_error():
    try:
        int("x")
    except ValueError as error:
        return UserFunctionError.of("map-1", error)


EXAMPLES = [
    PenstockError("a"),
    TypeMismatchError.of("Integer (int)", "x").inside("[2]").inside("field 'a'"),
    InvalidArgumentError.of("size", "positive", -1),
    InvalidArgumentError.unknown_option("penstock.x", "penstock.y"),
    InvalidProgramError.duplicate_uid("u", "map", "filter"),
    InvalidProgramError.missing_uid("'Map' (job.py:3)"),
    InvalidProgramError.nothing_to_run(),
    UnpicklableError.of("function f", TypeError("cannot pickle '_thread.lock' object")),
    InvalidKeyError.of([1], "lists have no hash"),
    InvalidKeyError.not_deterministic("a"),
    user_error(),
    AsyncTimeoutError.of(7, 1.5, "job.py:3"),
    AsyncTimeoutError.blocked(3.0, None),
    CheckpointError("c"),
    CheckpointCorruptError.of("/c/1", "checksum differs"),
    SavepointError.no_directory(),
    SavepointError.job_ended("j", "FINISHED"),
    SavepointError.of_batch("j"),
    SavepointError.uncommitted("j"),
    UntrustedSnapshotError.of("/x"),
    CheckpointMismatchError.non_restored("/x", "j", ["counts: state n"]),
    CheckpointMismatchError.unknown_sources("/x", ["a"], []),
    CheckpointMismatchError.batch_from_snapshot("/x"),
    SnapshotNotFoundError.at("/x", exists=False),
    SnapshotNotFoundError.incomplete("/x", "savepoint.json"),
    CheckpointFormatError.newer("/c/1", 3, 2),
    CheckpointMismatchError.other_job("/c", "a", "b"),
    CheckpointMismatchError.changed_type("op", "count", "Long", "String", "it was Long"),
    CheckpointMismatchError.of_two_types("noted"),
    CheckpointMismatchError.declared_differently("op", "count", "Long", "String"),
    MissingPackageError.of("Avro", "fastavro", "avro"),
    CheckpointUnwritableError.at("/c", PermissionError("denied")),
    FileAccessError.missing("/in"),
    FileAccessError.unreadable("/in/a.gz", EOFError("no end")),
    FileAccessError.changed("/in/a.parquet"),
    FileAccessError.not_text("/in/a", "utf-8", 7, b"\xff", "invalid start byte"),
    FileAccessError.unwritable("/out", PermissionError("denied")),
    FileAccessError.output_not_found("/out/.penstock-1/0-1-0"),
    LeaseHeldError.of("/c", "host1:77"),
    EngineError("a Python worker died"),
    SideInputError.unusable("rates", "job.py:3", KeyError("currency")),
    SinkCommitError.of("files", 3, OSError("disk full")),
    JobCancelledError.of("job"),
    JobFailedError.of("job", KeyError("k")),
    JobNotFoundError.of("a", ["b"]),
    JobNotFoundError.ambiguous("a", ["ab", "ac"]),
    JobUnreachableError.of("job", 77, "its process has died"),
    JobUnreachableError.elsewhere("job", "host1", 77, here=False),
    RemoteJobError.of("job", "CheckpointError", "no space"),
    UnsupportedFeatureError.of("x", "use y"),
    UnsupportedFeatureError.no_java("x"),
    RefusedNameError.of("x", "use y"),
    RefusedImportError.of("x", "use y"),
    RefusedImportError.of_module("x", "use y"),
    MalformedRecordError.of("JSON", b"{", ValueError("no end")),
    RecordTooLargeError.of(5),
    StateError.needs_key("get_state()"),
    StateError.no_current_key(),
    ReadOnlyStateError.of("rules", "put"),
    StoreLostError("the store is damaged"),
    RaisedInFunction("Traceback ..."),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_pickle(error):
    error.note = "kept"
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.args == error.args
    assert back.__dict__ == error.__dict__


def test_examples_cover_every_type():
    types = {c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)}
    assert types == {type(e) for e in EXAMPLES}


@pytest.mark.parametrize(
    ("error_type", "builtin"),
    [
        (TypeMismatchError, TypeError),
        (InvalidArgumentError, ValueError),
        (InvalidProgramError, ValueError),
        (UnpicklableError, TypeError),
        (InvalidKeyError, TypeError),
        (UserFunctionError, RuntimeError),
        (AsyncTimeoutError, TimeoutError),
        (CheckpointError, RuntimeError),
        (CheckpointCorruptError, CheckpointError),
        (CheckpointFormatError, CheckpointError),
        (CheckpointMismatchError, CheckpointError),
        (CheckpointUnwritableError, OSError),
        (FileAccessError, OSError),
        (LeaseHeldError, CheckpointError),
        (UnsupportedFeatureError, NotImplementedError),
        (RecordTooLargeError, ValueError),
        (StateError, RuntimeError),
        (ReadOnlyStateError, StateError),
        (ReadOnlyStateError, AttributeError),
        (StoreLostError, StateError),
        (StoreLostError, EngineError),
    ],
)
def test_builtin_kind(error_type, builtin):
    assert issubclass(error_type, builtin)
    assert issubclass(error_type, PenstockError)


def test_type_mismatch_message():
    assert str(EXAMPLES[1]) == (
        "expected Integer (int) at field 'a' [2], got str 'x'; "
        "convert the value or declare another type"
    )


def test_user_error_names_operator_line_and_cause():
    error = user_error()
    line = inspect.getsourcelines(user_error)[1] + 2
    assert error.operator == "map-1"
    assert error.location == f"{__file__}:{line}"
    assert error.original_type == "ValueError"
    assert "Traceback" in error.traceback_text
    assert str(error) == (
        f"operator 'map-1' failed at {__file__}:{line}: "
        "ValueError: invalid literal for int() with base 10: 'x'"
    )


def test_user_error_without_traceback():
    assert str(UserFunctionError.of("op", KeyError("k"))) == (
        "operator 'op' failed at an unknown line: KeyError: 'k'"
    )


def test_values_are_shown_short_and_safely():
    class Nasty:
        def __repr__(self):
            raise RuntimeError

    assert str(InvalidArgumentError.of("x", "y", Nasty())) == (
        "x must be y, got Nasty <unprintable: RuntimeError>"
    )
    assert len(str(InvalidArgumentError.of("x", "y", "a" * 10_000))) < 200
