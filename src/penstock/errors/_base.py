"""What all errors are, and those of arguments and values."""

from __future__ import annotations

from typing import Any, TypeVar

_E = TypeVar("_E", bound="PenstockError")


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


def got(value: object) -> str:
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
        return cls(f"{what} must be {expected}, got {got(value)}")

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


class RecordTooLargeError(PenstockError, ValueError):
    """One record is larger than what can be moved between tasks."""

    @classmethod
    def of(cls, limit: int) -> RecordTooLargeError:
        return cls(
            f"a record takes more than {limit:,} bytes; "
            "split it, or pass a reference to where the data is"
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
    def changed(cls, path: str) -> FileAccessError:
        return cls(
            f"{path} is not the file any more that was begun: it has another size or other row "
            "groups, so where reading stopped cannot be found in it; put the old file back, or "
            "write what is new to a file of another name"
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
    def not_parquet(cls, path: str, cause: BaseException) -> FileAccessError:
        return cls(
            f"{path} is not a Parquet file: {cause}; read only such files, and those of a watched "
            "folder when they are whole"
        )

    @classmethod
    def no_column(cls, path: str, missing: list[str], there: list[str]) -> FileAccessError:
        return cls(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(there)}; read these, or "
            "leave out files that are different"
        )

    @classmethod
    def several_columns(cls, path: str, column: str, found: list[str]) -> FileAccessError:
        return cls(
            f"{path} has several columns for {column}: {', '.join(found)}; name the column as the "
            "file does, or rename one"
        )

    @classmethod
    def other_type(cls, path: str, column: str, declared: object, found: object) -> FileAccessError:
        return cls(
            f"column {column} of {path} is declared as {declared!r} and has the type {found}; "
            "declare it as it is"
        )

    @classmethod
    def unlike_first(cls, path: str, column: str, first: object, found: object) -> FileAccessError:
        return cls(
            f"column {column} of {path} has the type {found}, in the first file it has {first}; "
            f"give it the same type in all files, as by pc.field({column!r}).cast(...) for the "
            "column, or leave out files that are different"
        )

    @classmethod
    def not_computed(
        cls, path: str, what: str, expression: object, cause: BaseException
    ) -> FileAccessError:
        reason = ", ".join(str(cause).splitlines())
        return cls(
            f"{what} cannot be computed from {path} as {expression}: {reason}; correct the "
            "expression, or leave out files that are different"
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
