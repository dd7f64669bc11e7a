"""Every exception type that Penstock raises on purpose.

Each one is also a built-in exception, so that ``except ValueError`` keeps working for users who
do not know us. Messages of a standard form come from named constructors and end with what to do.
Errors cross process borders, so all of them survive pickling. This module imports nothing of ours.
"""

from __future__ import annotations

import os
import traceback
from types import TracebackType
from typing import Any, TypeVar

_E = TypeVar("_E", bound="PenstockError")

_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY_PARTS = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    os.path.dirname(os.__file__) + os.sep,
)


def _rebuild(cls: type[_E], args: tuple[Any, ...], attributes: dict[str, Any]) -> _E:
    """Make an error anew without calling its constructor (its arguments may differ)."""
    # An OSError has a layout of its own, which `cls.__new__` misses if another base comes first.
    make = OSError.__new__ if issubclass(cls, OSError) else Exception.__new__
    error: _E = make(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def short_repr(value: object, limit: int = 80) -> str:
    """A repr that never raises and never floods a message."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<unprintable: {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _got(value: object) -> str:
    return f"{type(value).__name__} {short_repr(value)}"


class PenstockError(Exception):
    """Base of all errors of Penstock."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class TypeMismatchError(PenstockError, TypeError):
    """A value does not fit the declared type."""

    def __init__(
        self, expected: str, got_type: str, got_repr: str, path: tuple[str, ...] = ()
    ) -> None:
        self.expected = expected
        self.got_type = got_type
        self.got_repr = got_repr
        self.path = path
        where = f" at {' '.join(path)}" if path else ""
        super().__init__(
            f"expected {expected}{where}, got {got_type} {got_repr}; "
            "convert the value or declare another type"
        )

    @classmethod
    def of(cls, expected: str, value: object) -> TypeMismatchError:
        return cls(expected, type(value).__name__, short_repr(value))

    def inside(self, step: str) -> TypeMismatchError:
        """The same error seen from the enclosing value; `step` leads from there to the misfit."""
        return type(self)(self.expected, self.got_type, self.got_repr, (step, *self.path))


class InvalidArgumentError(PenstockError, ValueError):
    """A call into the API was given something it cannot use."""

    @classmethod
    def of(cls, what: str, expected: str, value: object) -> InvalidArgumentError:
        return cls(f"{what} must be {expected}, got {_got(value)}")

    @classmethod
    def unknown_option(cls, key: str, nearest: str | None) -> InvalidArgumentError:
        hint = f"did you mean {nearest!r}?" if nearest else "see penstock.options for all keys"
        return cls(f"unknown option {key!r}; {hint}")


class MalformedRecordError(PenstockError, ValueError):
    """A message is not what its schema says."""

    @classmethod
    def of(cls, format: str, message: object, cause: BaseException) -> MalformedRecordError:
        return cls(
            f"cannot read {short_repr(message)} as {format}: {cause}; correct the schema's type, "
            "or have it ignore parse errors"
        )


class InvalidProgramError(PenstockError, ValueError):
    """The dataflow graph is not one that can run."""

    @classmethod
    def duplicate_uid(cls, uid: str, first: str, second: str) -> InvalidProgramError:
        return cls(
            f"uid {uid!r} is given to two operators, {first} and {second}; "
            "state is found by uid, so give each operator its own"
        )

    @classmethod
    def missing_uid(cls, operator: str) -> InvalidProgramError:
        return cls(
            f"operator {operator} has no uid, and generated ones are disabled; "
            "call uid(...) on it, or enable_auto_generated_uids()"
        )

    @classmethod
    def no_timestamps(cls) -> InvalidProgramError:
        return cls(
            "event-time windows need timestamps, and a record has none; call "
            "assign_timestamps_and_watermarks(...) before window(...), with a strategy that has "
            "a timestamp assigner, or use processing-time windows"
        )

    @classmethod
    def order_without_keys(cls, operator: str) -> InvalidProgramError:
        return cls(
            f"operator {operator} is to handle its records in event-time order, and one of its "
            "inputs has no keys (a broadcast stream, for example); order its other input before, "
            "in an operator of its own"
        )

    @classmethod
    def order_without_time(cls, operator: str) -> InvalidProgramError:
        return cls(
            f"operator {operator} is to handle its records in event-time order, and they have no "
            "timestamps; call assign_timestamps_and_watermarks(...) before key_by, or if it is "
            "penstock.event-time-order.enabled that asks for it, in_event_time_order() on single "
            "streams instead"
        )

    @classmethod
    def open_loop(cls, head: str) -> InvalidProgramError:
        return cls(
            f"{head} begins an iteration that is never closed; call close_with(...) on it with the "
            "stream whose records are to come back, or leave iterate() out"
        )

    @classmethod
    def unlike_loop(cls, head: str, heads: int, end: str, ends: int) -> InvalidProgramError:
        return cls(
            f"{head} begins an iteration with parallelism {heads}, and {end}, with which it is "
            f"closed, has {ends}; they must be equal: call set_parallelism on one of them"
        )

    @classmethod
    def missing_module(cls, reason: str) -> InvalidProgramError:
        return cls(
            f"Spark's workers cannot load the program: {reason}; modules beside the program are "
            "sent to them, others are not: pass them to add_python_file(...), name their package "
            "in set_python_requirements(...), or install it on the workers"
        )

    @classmethod
    def cannot_install(cls, requirements: str, reason: str) -> InvalidProgramError:
        return cls(
            f"the requirements of {requirements} cannot be installed; pip says:\n{reason}\n"
            "Correct the file, or give set_python_requirements a directory of packages to install "
            "from as its second argument"
        )

    @classmethod
    def nothing_to_run(cls) -> InvalidProgramError:
        return cls("the program has no sink; add one (print(), sink_to(...)) before execute()")


class UnpicklableError(PenstockError, TypeError):
    """Something that must travel to a worker cannot be pickled."""

    @classmethod
    def of(cls, what: str, cause: BaseException) -> UnpicklableError:
        return cls(
            f"{what} cannot be sent to another process: {type(cause).__name__}: {cause}; "
            "connections, locks and open files cannot travel: a function creates them in open(), "
            "not in its constructor or at module level, and a record carries plain data instead"
        )


class InvalidKeyError(PenstockError, TypeError):
    """A key has no stable hash or does not fit the declared key type."""

    @classmethod
    def of(cls, key: object, reason: str) -> InvalidKeyError:
        return cls(
            f"key {_got(key)} cannot be used: {reason}; "
            "a key is a str, bytes, int, float, bool, date or a tuple of these"
        )

    @classmethod
    def missing(cls) -> InvalidKeyError:
        return cls(
            "the key selector gave None, and every record needs a key, as in Flink; give such "
            "records a key of their own, or filter(...) them out before"
        )

    @classmethod
    def not_deterministic(cls, key: object) -> InvalidKeyError:
        in_open = "; in open() there is no key yet, so state cannot be used" if key is None else ""
        return cls(
            f"key {_got(key)} belongs to another subtask than the one its record was sent to: the "
            "key selector gave another key when it was called again for the same record; a key "
            "selector must be deterministic, so it must not use hash() of a str, random numbers, "
            f"the time, or anything that changes{in_open}"
        )


class UserFunctionError(PenstockError, RuntimeError):
    """The user's function raised; names the operator and the user's own line."""

    def __init__(
        self,
        operator: str,
        location: str,
        original_type: str,
        original_message: str,
        traceback_text: str = "",
    ) -> None:
        self.operator = operator
        self.location = location
        self.original_type = original_type
        self.original_message = original_message
        self.traceback_text = traceback_text
        cause = f"{original_type}: {original_message}" if original_message else original_type
        super().__init__(f"operator {operator!r} failed at {location}: {cause}")

    @classmethod
    def of(
        cls, operator: str, cause: BaseException, location: str = "an unknown line"
    ) -> UserFunctionError:
        """Wrap what a user function raised; call it where the exception is caught.

        `location` is the line to name if none of the user's is in the trace: a function may be
        Python's own, or be called with the wrong arguments.
        """
        return cls(
            operator,
            user_line(cause.__traceback__) or location,
            type(cause).__name__,
            str(cause),
            "".join(
                traceback.format_exception(type(cause), cause, _from_users(cause.__traceback__))
            ),
        )

    def with_cause(self) -> UserFunctionError:
        """With the function's own trace above it; the exception stayed where it was raised."""
        if self.__cause__ is None and self.traceback_text:
            self.__cause__ = RaisedInFunction(self.traceback_text)
        return self


class RaisedInFunction(PenstockError):
    """What a user's function raised, as Python shows it."""

    def __str__(self) -> str:
        return f"\n{self.args[0].rstrip()}"


def _from_users(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames that led to the user's first one."""
    users = trace
    while users is not None and not is_users_file(users.tb_frame.f_code.co_filename):
        users = users.tb_next
    return users or trace


def user_line(trace: TracebackType | None) -> str | None:
    """The innermost line of the user's: neither Penstock's nor an installed library's."""
    for frame in reversed(traceback.extract_tb(trace)):
        if is_users_file(frame.filename):
            return f"{frame.filename}:{frame.lineno}"
    return None


def is_users_file(path: str) -> bool:
    """Whether code is neither Penstock's nor an installed library's."""
    ours = path.startswith((_PACKAGE_DIR, "<frozen"))
    return not ours and not any(part in path for part in _LIBRARY_PARTS)


class AsyncTimeoutError(PenstockError, TimeoutError):
    """A call of an asynchronous function took too long."""

    @classmethod
    def of(cls, value: object, seconds: float, waiting_at: str | None) -> AsyncTimeoutError:
        where = f", waiting at {waiting_at}" if waiting_at else ""
        return cls(
            f"async_invoke for {short_repr(value)} gave no answer within {seconds:g} s{where}; "
            "raise the time-out, or override AsyncFunction.timeout to give results for such records"
        )

    @classmethod
    def blocked(cls, seconds: float, line: str | None) -> AsyncTimeoutError:
        return cls(
            f"a coroutine has blocked the event loop for {seconds:.1f} s, longer than a call may "
            f"take, at {line or 'a line that is not known'}; await what takes long, or use "
            "asyncio.to_thread"
        )


class CheckpointError(PenstockError, RuntimeError):
    """A checkpoint or savepoint cannot be written, read or used."""


class SinkCommitError(CheckpointError):
    """An epoch is in the checkpoint, but a sink could not make its output visible yet."""

    @classmethod
    def of(cls, sink: str, epoch: int, cause: BaseException) -> SinkCommitError:
        return cls(
            f"sink {sink!r} could not commit epoch {epoch}: {type(cause).__name__}: {cause}; "
            "it is tried again when the job restarts"
        )


class CheckpointCorruptError(CheckpointError):
    """A file of a checkpoint is missing or damaged."""

    @classmethod
    def of(cls, path: str, reason: str) -> CheckpointCorruptError:
        return cls(
            f"checkpoint file {path} is damaged: {reason}; "
            "start from an earlier checkpoint or a savepoint"
        )


class SnapshotNotFoundError(CheckpointError, FileNotFoundError):
    """A path leads to no savepoint and to no checkpoint."""

    @classmethod
    def at(cls, path: str, exists: bool) -> SnapshotNotFoundError:
        found = "there is none in it" if exists else "it does not exist"
        return cls(
            f"{path} is no savepoint or checkpoint: {found}; give a savepoint's directory, a job's "
            "directory of checkpoints or one of the manifests in its epochs"
        )

    @classmethod
    def incomplete(cls, path: str, manifest: str) -> SnapshotNotFoundError:
        return cls(
            f"{path} is not a whole savepoint: {manifest} is missing, which is written last; it "
            "may not have been finished, or not have been copied to its end"
        )


class UntrustedSnapshotError(CheckpointError):
    """A savepoint or checkpoint that somebody else wrote holds pickled values."""

    @classmethod
    def of(cls, path: str) -> UntrustedSnapshotError:
        return cls(
            f"{path} was not written by you, or was changed since, and it holds pickled values, "
            "which run code when they are opened; if you trust whoever wrote it, allow that with "
            "--trust-pickle or penstock.trust-pickle: true"
        )

    @classmethod
    def of_another_user(cls, path: str, uid: int) -> UntrustedSnapshotError:
        return cls(
            f"{path} belongs to another user (uid {uid}), and checkpoints hold pickled values, "
            "which run code when they are opened; if you trust that user, allow it with "
            "--trust-pickle or penstock.trust-pickle: true"
        )


class SavepointError(CheckpointError):
    """A savepoint was asked for and cannot be made."""

    @classmethod
    def no_directory(cls) -> SavepointError:
        return cls(
            "there is no directory for the savepoint; give one, or set "
            "execution.checkpointing.savepoint-dir"
        )

    @classmethod
    def job_ended(cls, job: str, status: str) -> SavepointError:
        return cls(f"no savepoint was made of job {job!r}: it has ended ({status})")

    @classmethod
    def inside_the_job(cls, directory: str, root: str) -> SavepointError:
        return cls(
            f"{directory} is within {root}, so a savepoint there would be deleted with the job's "
            "checkpoints; give a directory elsewhere"
        )

    @classmethod
    def already_stopping(cls, job: str, how: str) -> SavepointError:
        return cls(
            f"job {job!r} is being {how} already; wait for that savepoint, or ask again if it fails"
        )

    @classmethod
    def uncommitted(cls, job: str) -> SavepointError:
        return cls(
            f"no savepoint was made of job {job!r}: a sink has not committed the output of its "
            "last epoch"
        )

    @classmethod
    def of_batch(cls, job: str) -> SavepointError:
        return cls(
            f"no savepoint can be made of job {job!r}: it runs in BATCH mode, in which there is "
            "nothing to go on from; use STREAMING mode"
        )


class CheckpointFormatError(CheckpointError):
    """The checkpoint was written in a format this version does not know."""

    @classmethod
    def newer(cls, path: str, found: int, supported: int) -> CheckpointFormatError:
        return cls(
            f"{path} has format version {found}, this Penstock reads up to {supported}; "
            "upgrade Penstock, or start from a checkpoint that it wrote"
        )

    @classmethod
    def older(cls, path: str, found: int, supported: int) -> CheckpointFormatError:
        return cls(
            f"{path} has format version {found} of an earlier Penstock, this one reads "
            f"{supported}; go on with that Penstock, or start anew with another penstock.job-id"
        )


class CheckpointMismatchError(CheckpointError):
    """The checkpoint belongs to another job, or to an incompatible version of this one."""

    @classmethod
    def other_job(cls, path: str, expected: str, found: str) -> CheckpointMismatchError:
        return cls(
            f"{path} belongs to job {found!r}, not to {expected!r}; "
            "set another execution.checkpointing.dir or penstock.job-id"
        )

    @classmethod
    def other_streams(cls, uid: str, before: int, now: int) -> CheckpointMismatchError:
        return cls(
            f"the DataFrame of {uid!r} was made of {before} streams and is made of {now}, and "
            "nothing tells which of them is which; name them with readStream.name() as they were "
            "named, or give each of them a from_spark() with a uid of its own"
        )

    @classmethod
    def other_source(cls, now: str, keep: str) -> CheckpointMismatchError:
        return cls(
            f"{now} cannot go on from this checkpoint, whose positions are those of another; "
            f"{keep}, or start anew with another penstock.job-id or a clean "
            "execution.checkpointing.dir"
        )

    @classmethod
    def no_savepoint(cls, path: str, job_id: str) -> CheckpointMismatchError:
        return cls(
            f"{path} is a checkpoint of job {job_id!r}, which deletes it itself; only savepoints "
            "are disposed of: give the directory of one"
        )

    @classmethod
    def batch_from_snapshot(cls, path: str) -> CheckpointMismatchError:
        return cls(
            f"a job in BATCH mode reads all of its input anew and cannot start from {path}; "
            "use RuntimeExecutionMode.STREAMING, or leave execution.state-recovery.path out"
        )

    @classmethod
    def reset_of_newest(cls, path: str, newest: str) -> CheckpointMismatchError:
        return cls(
            f"{path} stands for whichever epoch is the job's newest, so that "
            "penstock.state-recovery.reset-sources would have its sources begin anew at every "
            f"start; name the epoch, {newest}, or a savepoint"
        )

    @classmethod
    def unknown_sources(
        cls, path: str, uids: list[str], known: list[str]
    ) -> CheckpointMismatchError:
        return cls(
            f"{path} has no positions of sources {', '.join(uids)}, which were to be reset; it has "
            f"those of {', '.join(known) or 'none'}"
        )

    @classmethod
    def non_restored(cls, path: str, job: str, operators: list[str]) -> CheckpointMismatchError:
        return cls(
            f"{path} holds state of job {job!r} that no operator of this program takes:\n"
            + "".join(f"  - {operator}\n" for operator in operators)
            + "Give the operators the uids they had, or drop this state with "
            "--allow-non-restored-state (execution.state-recovery.ignore-unclaimed-state: true), "
            "or start anew with another penstock.job-id or execution.checkpointing.dir"
        )

    @classmethod
    def of_streaming(cls, path: str, epoch: int) -> CheckpointMismatchError:
        return cls(
            f"{path} holds epoch {epoch} of this job in STREAMING mode, and a BATCH job reads all "
            "of its input anew; go on in STREAMING mode, or start anew with another "
            "penstock.job-id or a clean execution.checkpointing.dir"
        )

    @classmethod
    def order_given_up(cls, operator: str, path: str) -> CheckpointMismatchError:
        return cls(
            f"operator {operator} handled its records in event-time order, and some may be waiting "
            f"in the checkpoint in {path}, which it would never get now; keep "
            "in_event_time_order() or penstock.event-time-order.enabled, or start anew with "
            "another penstock.job-id or a clean execution.checkpointing.dir"
        )

    @classmethod
    def changed_type(
        cls, operator: str, state: str, stored: object, declared: object, difference: str = ""
    ) -> CheckpointMismatchError:
        because = f": {difference}" if difference else ""
        return cls(
            f"state {state!r} of operator {operator!r} was stored as {stored} and is now declared "
            f"as {declared}{because}; keep it as it was, or use a new state name"
        )

    @classmethod
    def of_two_types(cls, state: str) -> CheckpointMismatchError:
        return cls(
            f"operator state {state!r} has changed its type, and not all subtasks have declared it "
            "since: they cannot be dealt out anew; run the job with the parallelism it had, and "
            "declare the state in initialize_state"
        )

    @classmethod
    def declared_differently(
        cls, operator: str, state: str, here: object, there: object
    ) -> CheckpointMismatchError:
        return cls(
            f"state {state!r} of operator {operator!r} is declared as {here} by one subtask and as "
            f"{there} by another; declare it alike, or use two state names"
        )


class CheckpointUnwritableError(CheckpointError, OSError):
    """The checkpoint directory refuses writes."""

    @classmethod
    def at(cls, path: str, cause: BaseException) -> CheckpointUnwritableError:
        return cls(
            f"cannot write checkpoint at {path}: {type(cause).__name__}: {cause}; "
            "check that the directory exists, has space, and that this user may write there"
        )


class FileAccessError(PenstockError, OSError):
    """A file or directory that the program names cannot be used as it is."""

    @classmethod
    def missing(cls, path: str) -> FileAccessError:
        return cls(
            f"there is no file or directory {path}; give a path that exists on every machine of "
            "the cluster"
        )

    @classmethod
    def unreadable(cls, path: str, cause: BaseException) -> FileAccessError:
        return cls(
            f"cannot read {path}: {type(cause).__name__}: {cause}; check that it is whole and that "
            "this user may read it, on every machine of the cluster"
        )

    @classmethod
    def not_text(
        cls, path: str, charset: str, offset: int, found: bytes, reason: str
    ) -> FileAccessError:
        return cls(
            f"{path} is not text in {charset}: {reason} at byte {offset} ({found!r}); "
            "name the character set that it is in, as in text_line_format('ISO-8859-1')"
        )

    @classmethod
    def unwritable(cls, path: str, cause: BaseException) -> FileAccessError:
        return cls(
            f"cannot write to {path}: {type(cause).__name__}: {cause}; check that it is a "
            "directory, has space, and that this user may write there"
        )

    @classmethod
    def output_not_found(cls, path: str) -> FileAccessError:
        return cls(
            f"the driver does not find {path}, which a task has written; the output directory must "
            "be the same one on every machine of the cluster (NFS, a Kubernetes volume, a FUSE "
            "mount)"
        )


class LeaseHeldError(CheckpointError):
    """Another driver works on the same checkpoint directory."""

    @classmethod
    def of(cls, path: str, holder: str) -> LeaseHeldError:
        return cls(
            f"{path} is in use by {holder}; stop that job first, or use another job id or directory"
        )


class JobCancelledError(PenstockError, RuntimeError):
    """The job was cancelled before it could give what was asked."""

    @classmethod
    def of(cls, job: str) -> JobCancelledError:
        return cls(f"job {job!r} was cancelled")


class JobNotFoundError(PenstockError, LookupError):
    """No job has this name or id, or several have."""

    @classmethod
    def of(cls, wanted: str, running: list[str]) -> JobNotFoundError:
        there = f"running are {', '.join(running)}" if running else "none of yours is running"
        return cls(f"there is no job {wanted!r}; {there}")

    @classmethod
    def ended(cls, wanted: str, outcome: str, running: list[str]) -> JobNotFoundError:
        there = f"running are {', '.join(running)}" if running else "none of yours is running"
        return cls(f"job {wanted!r} has ended already: {outcome}; {there}")

    @classmethod
    def ambiguous(cls, wanted: str, found: list[str]) -> JobNotFoundError:
        return cls(f"{wanted!r} may be any of {', '.join(found)}; give more of its run id")


class JobUnreachableError(PenstockError, ConnectionError):
    """A job cannot be asked, or gives no answer."""

    @classmethod
    def of(cls, job: str, pid: int, reason: str) -> JobUnreachableError:
        return cls(
            f"job {job!r} (process {pid}) does not answer: {reason}; `penstock list` shows what is "
            "running, and the program's own output what became of it"
        )

    @classmethod
    def elsewhere(cls, job: str, host: str, pid: int, here: bool) -> JobUnreachableError:
        if here:
            return cls(
                f"job {job!r} (process {pid}) does not listen, since it could not make a socket in "
                "its user's state directory; stop it by kill -INT"
            )
        return cls(
            f"job {job!r} runs on {host}, and only its processes can talk to it; log in there"
        )


class RemoteJobError(PenstockError, RuntimeError):
    """A running job was asked for something, and refused or failed to do it."""

    type_name: str = ""
    """The name of the error's type, as it was raised in the job's process."""

    @classmethod
    def of(cls, job: str, type_name: str, message: str) -> RemoteJobError:
        error = cls(f"job {job!r}: {message}")
        error.type_name = type_name
        return error


class JobFailedError(PenstockError, RuntimeError):
    """The job failed and will not be restarted."""

    @classmethod
    def of(cls, job: str, cause: BaseException) -> JobFailedError:
        """`cause` says why; raise the result ``from cause`` to keep the chain."""
        return cls(f"job {job!r} failed: {type(cause).__name__}: {cause}")


NO_JAVA = "there are no Flink Java objects behind Penstock, only Python"


class UnsupportedFeatureError(PenstockError, NotImplementedError):
    """PyFlink or Flink has it; here it cannot work, or does not yet."""

    @classmethod
    def of(cls, feature: str, hint: str) -> UnsupportedFeatureError:
        return cls(f"{feature} is not supported; {hint}")

    @classmethod
    def no_java(cls, what: str) -> UnsupportedFeatureError:
        return cls.of(what, NO_JAVA)


class MissingPackageError(PenstockError, ImportError):
    """A package that only some programs need is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingPackageError:
        return cls(
            f"{what} needs the package {package}, which is not installed here; "
            f"pip install 'penstock[{extra}]', on every machine of the cluster"
        )


class RefusedNameError(UnsupportedFeatureError, AttributeError):
    """A name of PyFlink's that is not here. To `hasattr` it is not there."""


class RefusedImportError(UnsupportedFeatureError, ImportError):
    """The same for an import of a name or module, where Python swallows every AttributeError."""

    @classmethod
    def of_module(cls, name: str, hint: str) -> RefusedImportError:
        error = cls(f"{name} is not supported; {hint}")
        error.name = name
        return error


class RecordTooLargeError(PenstockError, ValueError):
    """One record is larger than what can be moved between tasks."""

    @classmethod
    def of(cls, where: str, size: int, limit: int) -> RecordTooLargeError:
        return cls(
            f"a record of {size} bytes at {where} is over the limit of {limit}; "
            "store the large part elsewhere and send a reference to it"
        )


class StateError(PenstockError, RuntimeError):
    """State was used where, or in a way, it cannot be."""

    @classmethod
    def needs_key(cls, what: str) -> StateError:
        return cls(f"{what} is only possible on a keyed stream; call key_by() first")

    @classmethod
    def no_current_key(cls) -> StateError:
        return cls(
            "there is no current key here, so there is neither state of a key nor a timer: the "
            "record came by an input that is not keyed, or there is none, as in initialize_state "
            "and snapshot_state; use them on the keyed side, or "
            "ctx.apply_to_keyed_state(descriptor, function) for all keys of the subtask"
        )

    @classmethod
    def asked_elsewhere(cls, method: str) -> StateError:
        return cls(
            f"there is no {method}() here: a CheckpointedFunction asks for it in "
            "initialize_state(context) and keeps the states that it declares there"
        )


class ReadOnlyStateError(StateError, AttributeError):
    """State was to be changed where it may only be read. To `hasattr` the method is not there."""

    @classmethod
    def of(cls, state: str, what: str) -> ReadOnlyStateError:
        return cls(
            f"broadcast state {state!r} can only be read here, so it has no {what}; change it in "
            "process_broadcast_element, which every subtask calls with the same records"
        )


class SideInputError(PenstockError, RuntimeError):
    """The table of a side input cannot be read or used. Worth a restart: tables change."""

    @classmethod
    def of(cls, name: str, location: str, reason: str) -> SideInputError:
        return cls(f"side input {name!r} ({location}) cannot be used: {reason}")

    @classmethod
    def unusable(cls, name: str, location: str, cause: BaseException) -> SideInputError:
        return cls.of(name, location, f"{type(cause).__name__}: {cause}")

    @classmethod
    def unreadable(cls, name: str, location: str, cause: BaseException) -> SideInputError:
        """What the user's function or Spark raised."""
        where = user_line(cause.__traceback__) or location
        return cls(
            f"side input {name!r} ({location}) cannot be read: {type(cause).__name__}: {cause} "
            f"(at {where})"
        )


class EngineError(PenstockError, RuntimeError):
    """Spark could not run an epoch: a worker, an executor or a job died. Worth a restart."""

    details: str = ""
    """All that Spark said."""


class StoreLostError(StateError, EngineError):
    """A worker's copy of some state was lost. The checkpoint is whole: a restart rebuilds it."""
