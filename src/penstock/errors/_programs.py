"""Errors in a program: how it is built, what it asks for, what cannot travel to workers."""

from __future__ import annotations

from penstock.errors._base import PenstockError, got


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
    def columns_of_one_branch(cls, operator: str, before: str) -> InvalidProgramError:
        return cls(
            f"{operator} is a Column, which Spark applies to the rows of the source, and {before} "
            "is read by other operators too; call from_spark once for each of them, or use a "
            "Python function here"
        )

    @classmethod
    def not_columnar(cls, method: str, why: str) -> InvalidProgramError:
        return cls(
            f"{method} was given a Column, and {why}; Columns come right behind from_spark, before "
            "any Python function and before timestamps are assigned: move it there, or pass a "
            "Python function"
        )

    @classmethod
    def bad_column(cls, method: str, cause: str) -> InvalidProgramError:
        return cls(f"{method} was given a Column that does not fit the stream's rows: {cause}")

    @classmethod
    def foreign_column(cls, source: str, cause: str) -> InvalidProgramError:
        return cls(
            f"a Column behind {source} belongs to the DataFrame itself, whose rows are read from a "
            f"copy: {cause}; name columns by pyspark.sql.functions.col('name')"
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
            f"key {got(key)} cannot be used: {reason}; "
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
            f"key {got(key)} belongs to another subtask than the one its record was sent to: the "
            "key selector gave another key when it was called again for the same record; a key "
            "selector must be deterministic, so it must not use hash() of a str, random numbers, "
            f"the time, or anything that changes{in_open}"
        )


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
