"""The plan on its way to the workers: one file per job start, read once per process.

Classes that the user's script defines are `__main__.X` on the driver. A worker has another
`__main__`, so they travel by value and are put there: then plain pickle finds them on both sides.
The program is pickled within what a worker must know before it can unpickle it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TypeVar, cast

import cloudpickle
from xxhash import xxh3_64_hexdigest

from penstock import compat
from penstock.errors import UnpicklableError
from penstock.runtime.physical import PhysicalPlan
from penstock.storage.filesystem import filesystem_for

T = TypeVar("T")

_loaded: dict[str, PhysicalPlan] = {}


def dump_plan(plan: PhysicalPlan) -> bytes:
    """The plan, and the script's own classes, pickled. Names the operator that cannot be."""
    for vertex in plan.vertices:
        for described in vertex.operators:
            try:
                cloudpickle.dumps((described.operator, described.side_inputs))
            except Exception as error:
                what = f"the function of operator {described.name!r} ({described.location})"
                raise UnpicklableError.of(what, error) from error
    for edge in plan.edges:
        try:
            cloudpickle.dumps(edge.partitioning)
        except Exception as error:
            what = f"the function of {edge.name!r} ({edge.location})"
            raise UnpicklableError.of(what, error) from error
    program = cloudpickle.dumps({"main": _main_classes(), "plan": plan})
    content = {
        "process": os.getpid(),
        "as_pyflink": compat.installed(),
        "program": program,
    }
    return cast(bytes, cloudpickle.dumps(content))


def plan_name(data: bytes) -> str:
    return f"{xxh3_64_hexdigest(data)}.plan"


def load_plan(path: str) -> PhysicalPlan:
    """The plan of a file; the same object each time in one process."""
    plan = _loaded.get(path)
    if plan is None:
        fs, local = filesystem_for(path)
        content = cloudpickle.loads(fs.read(local))
        if content["as_pyflink"]:
            compat.install()
        program = cloudpickle.loads(content["program"])
        if content["process"] != os.getpid():
            _install(program["main"])
        plan = program["plan"]
        _loaded[path] = plan
    return plan


def copied(part: T) -> T:
    """A part of a plan with functions of its own, as if it had come from the file once more."""
    return cast(T, cloudpickle.loads(cloudpickle.dumps(part)))


def _main_classes() -> dict[str, Any]:
    main = sys.modules.get("__main__")
    found = {}
    for name, value in vars(main).items() if main is not None else ():
        if isinstance(value, type) and value.__module__ == "__main__":
            with contextlib.suppress(Exception):
                cloudpickle.dumps(value)
                found[name] = value
    return found


def _install(classes: dict[str, Any]) -> None:
    main = sys.modules.get("__main__")
    for name, cls in classes.items():
        # A class of the same name from an earlier job in this worker is out of date.
        setattr(main, name, cls)
