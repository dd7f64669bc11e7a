"""Names of frames, and the kind of work that frames of ours do, by the code they run.

Both are told by a code object, so each is looked at once in a process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import CodeType

from penstock.runtime.profiling.samples import (
    CATCH_UP,
    DECODE,
    ENCODE,
    OPENING,
    ROUTING,
    SEGMENT,
    STATE_READ,
    STATE_WRITE,
    WAITING,
)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

# The first that fits: path within the package, names of functions (none: all of them), kind.
_KINDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("driver/spark_stages.py", ("_to_arrow", "_cut", "_int_array"), ENCODE),
    ("driver/spark_stages.py", ("_from_arrow", "_sliced"), DECODE),
    ("datastream/_records.py", (), DECODE),
    ("datastream/connectors/_arrow_columns.py", (), DECODE),
    ("runtime/payload.py", ("decode_body", "read_header"), DECODE),
    ("runtime/payload.py", (), ENCODE),
    ("runtime/codec.py", ("decode", "_thaw"), DECODE),
    ("runtime/codec.py", (), ENCODE),
    ("runtime/writers.py", ("_flush", "_flush_halves", "_frozen"), ENCODE),
    ("runtime/writers.py", (), ROUTING),
    ("runtime/stores.py", (), CATCH_UP),
    ("runtime/batch_writer.py", ("_post_batch",), ENCODE),
    ("runtime/batch_writer.py", (), ROUTING),
    ("runtime/vertex_task.py", ("__init__",), OPENING),
    ("runtime/chain.py", ("compose",), OPENING),
    ("runtime/task_state.py", ("_write_segment", "_write", "make_room"), SEGMENT),
    ("state/keys.py", (), ROUTING),
    ("state/key_groups.py", (), ROUTING),
    ("storage/catch_up.py", (), CATCH_UP),
)
_WRITES = ("update", "add", "put", "clear", "remove", "register", "delete", "set", "append")
# These hold until they end, whatever they lead to; others are what the innermost frame says.
LASTING = frozenset({SEGMENT, STATE_READ, STATE_WRITE, DECODE, ENCODE})
OVERRULING = frozenset({CATCH_UP, WAITING})
_KEYED_STATE = "state" + os.sep
_STORAGE = "storage" + os.sep
_TELLING = frozenset({"self", "call", "owners"})


@dataclass(frozen=True)
class CodeName:
    """What is known of a frame by its code."""

    label: str
    ours: bool
    kind: str | None
    telling: bool
    """Whether its locals may tell for which operator it works."""


_known: dict[CodeType, CodeName] = {}


def name_of(code: CodeType) -> CodeName:
    found = _known.get(code)
    if found is None:
        found = _known[code] = _name_of(code)
    return found


def _name_of(code: CodeType) -> CodeName:
    path = code.co_filename
    inside = path.removeprefix(_PACKAGE) if path.startswith(_PACKAGE) else None
    name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
    label = f"{name} ({os.path.basename(path)}:{code.co_firstlineno})".replace(";", ",")
    if inside is None:
        reading = "pyspark" in path and code.co_name in ("load_stream", "read_int")
        return CodeName(label, False, WAITING if reading else None, False)
    names = (*code.co_varnames, *code.co_freevars, *code.co_cellvars)
    telling = inside.startswith("runtime" + os.sep) and not _TELLING.isdisjoint(names)
    return CodeName(label, True, _kind_of(inside, code.co_name), telling)


def _kind_of(path: str, function: str) -> str | None:
    plain = path.replace(os.sep, "/")
    for file, functions, kind in _KINDS:
        if plain == file and (not functions or function in functions):
            return kind
    if path.startswith(_KEYED_STATE):
        return STATE_WRITE if function.lstrip("_").startswith(_WRITES) else STATE_READ
    return STATE_READ if path.startswith(_STORAGE) else None
