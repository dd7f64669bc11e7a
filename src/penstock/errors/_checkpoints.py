"""Checkpoints and savepoints that cannot be written, read or used."""

from __future__ import annotations

from penstock.errors._base import PenstockError


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


class LeaseHeldError(CheckpointError):
    """Another driver works on the same checkpoint directory."""

    @classmethod
    def of(cls, path: str, holder: str) -> LeaseHeldError:
        return cls(
            f"{path} is in use by {holder}; stop that job first, or use another job id or directory"
        )
