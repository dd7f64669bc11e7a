"""Loops over records, put together from what each operator of a chain does with one.

An operator says in lines of source what becomes of a record. The lines of all operators that
follow one another are compiled as the body of one loop, so that between two of them there is
neither a call nor a generator. Which operator a line belongs to stands in the loop's `owners`, by
line: so its frames tell whose error it is, and whose time.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from penstock.common.digests import text_digest
from penstock.state.backend import KeyScope

Records = Iterable[Any]
Body = Callable[[Records], Any]
"""A compiled loop: a function, or a generator of results."""
TakeRecords = Callable[[Records], None]

Owner = tuple[Any, Any]
"""The user's callable, and what its results go to."""

_NOBODY: Owner = (None, None)


class LineOwners(tuple[Owner, ...]):
    """Whose the lines of a loop are. Of a class of its own: users have variables named `owners`."""

    __slots__ = ()

    def at(self, line: int | None) -> Owner:
        return self[line] if line is not None and line < len(self) else _NOBODY


_NAME = re.compile(r"\$(\w+)")
_PLACE = os.path.dirname(os.path.abspath(__file__))
# Loops within a loop; Python has 20 at most.
_DEEPEST = 10


class Step:
    """What is done with one record, which is `value` before and after.

    `$name` stands for what is given under that name, of which `call` and `emit` tell whose step it
    is. By `continue` a record goes no further. After `many` results the lines end in a loop over
    them, in which all else follows.
    """

    def __init__(self, *lines: str, many: bool = False, **given: Any) -> None:
        self.lines = lines
        self.many = many
        self.given = given

    @property
    def owner(self) -> Owner:
        return self.given.get("call"), self.given.get("emit")

    def written(self, number: int) -> list[str]:
        """The lines, with names of its own for what is given."""
        return [_NAME.sub(rf"\1_{number}", line) for line in self.lines]


class _Loop(NamedTuple):
    steps: tuple[Step, ...]
    finish: Callable[[Body], TakeRecords]
    """What makes a run of the compiled loop."""
    gives: bool
    """Whether results are left to be drawn."""
    counted: bool = False
    """Whether it must not get more than one result for each record."""
    scope: KeyScope | None = None
    """Where a record's timestamp is noted, if records come as pairs, that before them."""


class ComposedRun:
    """Takes records, each of which goes through all steps. Compiled when the first ones come."""

    def __init__(self, loop: _Loop) -> None:
        self.loop = loop
        self._run: TakeRecords | None = None

    def __call__(self, values: Records) -> None:
        if self._run is None:
            self._run = self.loop.finish(compiled(self.loop))
        self._run(values)


def ending(step: Step) -> ComposedRun:
    """Records end with this step: they are written, or handed to something outside."""
    return ComposedRun(_Loop((step,), lambda body: body, gives=False))


def ending_in_strides(step: Step, finish: Callable[[Body], TakeRecords]) -> ComposedRun:
    """The same where what follows must see to something after so many records: `finish` calls the
    loop again and again."""
    return ComposedRun(_Loop((step,), finish, gives=False, counted=True))


def before(run: TakeRecords, step: Step) -> ComposedRun:
    """A step, and then what a run does: in the same loop, if that is one."""
    loop = _loop_of(run)
    if not _may_begin(loop, step):
        loop = _handing_to(run)
    return ComposedRun(loop._replace(steps=(step, *loop.steps)))


def stamping(run: TakeRecords, scope: KeyScope) -> ComposedRun:
    """What a run does, for records that come as pairs: a timestamp, which is noted, and a value."""
    return ComposedRun(_loop_of(run)._replace(scope=scope))


def _loop_of(run: TakeRecords) -> _Loop:
    return run.loop if isinstance(run, ComposedRun) else _handing_to(run)


def _handing_to(run: TakeRecords) -> _Loop:
    return _Loop((), lambda body: lambda values: run(body(values)), gives=True)


def _may_begin(loop: _Loop, step: Step) -> bool:
    return not step.many or (not loop.counted and sum(s.many for s in loop.steps) < _DEEPEST)


def compiled(loop: _Loop) -> Body:
    record = "value" if loop.scope is None else "scope.timestamp, value"
    lines, owners, indent = [f"for {record} in values:"], [_NOBODY], 1
    given: dict[str, Any] = {"scope": loop.scope}
    for number, step in enumerate(loop.steps):
        given.update({f"{name}_{number}": value for name, value in step.given.items()})
        for line in step.written(number):
            lines.append(" " * indent + line)
            owners.append(step.owner)
        indent += step.many
    if loop.gives:
        lines.append(" " * indent + "yield value")
        owners.append(_NOBODY)
    used = [name for name in given if any(name in line for line in lines)]
    parameters = ", ".join(f"{name}={name}" for name in ["owners", *used])
    heads = [f"def make({', '.join(['owners', *used])}):", f" def loop(values, {parameters}):"]
    source = "\n".join([*heads, *("  " + line for line in lines), " return loop"])
    namespace: dict[str, Any] = {}
    exec(_code_of(source), namespace)
    # Lines are counted from 1, and two come before the first.
    by_line = LineOwners((_NOBODY, _NOBODY, _NOBODY, *owners))
    body: Body = namespace["make"](by_line, **{name: given[name] for name in used})
    return body


@lru_cache(maxsize=512)
def _code_of(source: str) -> Any:
    """Compiled once in a process, under a name by which a traceback can show its lines. A profile
    brings frames of several processes together: so it is the same in all of them."""
    place = os.path.join(_PLACE, f"<loop {text_digest(source)[:8]}>")
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    return compile(source, place, "exec")
