"""Compares Penstock with PyFlink's surface (tests/data/pyflink_surface.json), name by name.

Nothing is taken on trust: a name works if it is there, does not only refuse, and can be called as
PyFlink's can.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from penstock.driver.running_job import RunningJob
from penstock.errors import UnsupportedFeatureError
from penstock.pyflink_names import OLD_METHODS
from penstock.refusals import reason_of

SURFACE = Path(__file__).parents[1] / "tests" / "data" / "pyflink_surface.json"

# Where PyFlink's class is an interface here, and another class is what users get.
IMPLEMENTATIONS = {"common.job_client.JobClient": RunningJob}

# What classes here have for the engine, and users have no use for.
ENGINE_METHODS = {
    "configure",
    "converter",
    "describe",
    "from_bytes",
    "log_failure",
    "parse",
    "plain",
    "serializer",
    "snapshot",
    "to_bytes",
}

Classes: TypeAlias = dict[str, tuple[dict[str, Any], Any]]
"""By its name, a class as PyFlink has it and as it is here."""

WRAPS_JAVA = "it only wraps a Java object; "
# Constructors that take the name of a Java class, or the object itself, by another name than j_….
JAVA_ARGUMENTS = {"source", "source_func", "sink", "sink_func"}
NO_EFFECT = ("Accepted and without effect", "Kept for PyFlink programs")


class Verdict(Enum):
    WORKS = "works"
    MORE = "works and does more"
    REFUSED = "refused"
    WRONG = "neither there nor refused"


@dataclass(frozen=True)
class Finding:
    """What became of one name of PyFlink's: a module, class, method, function or attribute."""

    module: str
    name: str
    """Within the module, dotted; empty for the module itself."""
    verdict: Verdict
    note: str = ""
    """Why it is refused or wrong, or what it does beyond PyFlink."""
    no_effect: str = ""
    """Why it changes nothing, if that is so."""


@dataclass(frozen=True)
class Parameters:
    """Of a function, `self` left out: names in order, and what else it takes."""

    names: tuple[str, ...]
    required: frozenset[str]
    keyword_only: frozenset[str] = frozenset()
    any_positional: bool = False
    any_keyword: bool = False

    @staticmethod
    def parse(text: str) -> Parameters:
        """From the form in the data file: `(self, a, b=, *c, d=, **e)`."""
        parts = [part for part in text[1:-1].split(", ") if part not in ("self", "cls", "")]
        star = next((i for i, part in enumerate(parts) if part.startswith("*")), len(parts))
        named = [part for part in parts if not part.startswith("*")]
        return Parameters(
            tuple(part.rstrip("=") for part in parts[:star]),
            frozenset(part for part in named if not part.endswith("=")),
            frozenset(part.rstrip("=") for part in parts[star:] if not part.startswith("*")),
            any(part[0] == "*" and part[1:2] not in ("", "*") for part in parts),
            any(part.startswith("**") for part in parts),
        )

    @staticmethod
    def of(function: Any) -> Parameters:
        found = list(inspect.signature(function).parameters.values())
        positional = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        keyword_only = [p for p in found if p.kind is p.KEYWORD_ONLY]
        return Parameters(
            tuple(p.name for p in positional),
            frozenset(p.name for p in positional + keyword_only if p.default is p.empty),
            frozenset(p.name for p in keyword_only),
            any(p.kind is p.VAR_POSITIONAL for p in found),
            any(p.kind is p.VAR_KEYWORD for p in found),
        )

    def without_self(self) -> Parameters:
        return Parameters(
            self.names[1:],
            self.required - set(self.names[:1]),
            self.keyword_only,
            self.any_positional,
            self.any_keyword,
        )

    def without_java(self) -> Parameters:
        """Java objects cannot be passed, so where they may be left out they do not count."""
        return Parameters(
            tuple(name for name in self.names if not name.startswith("j_")),
            self.required,
            self.keyword_only,
            self.any_positional,
            self.any_keyword,
        )

    @property
    def needs_java(self) -> bool:
        return any(name.startswith("j_") for name in self.required)


def misfit(wanted: Parameters, found: Parameters) -> str | None:
    """Why a call that PyFlink takes would fail or mean something else; None if none would."""
    if found.names[: len(wanted.names)] != wanted.names:
        return f"takes ({', '.join(found.names)}), not ({', '.join(wanted.names)})"
    if missing := wanted.keyword_only - found.keyword_only - set(found.names):
        return f"does not take {', '.join(sorted(missing))}"
    if wanted.any_positional and not found.any_positional:
        return "does not take any number of arguments"
    if wanted.any_keyword and not found.any_keyword:
        return "does not take any keyword"
    if needed := found.required - wanted.required:
        return f"needs {', '.join(sorted(needed))}"
    return None


def extra(wanted: Parameters, found: Parameters) -> list[str]:
    """What it takes beyond PyFlink's parameters."""
    names = [*found.names[len(wanted.names) :], *sorted(found.keyword_only - wanted.keyword_only)]
    return names + (["…"] if found.any_positional and not wanted.any_positional else [])


def compare() -> list[Finding]:
    """All of PyFlink's names, in its order."""
    surface = json.loads(SURFACE.read_text())
    others: Classes = {}
    for module, found in surface.items():
        try:
            here = importlib.import_module(f"penstock.{module}")
        except ImportError:
            continue
        for name, described in found.get("classes", {}).items():
            if (cls := getattr(here, name, None)) is not None:
                others[name] = described, cls
    return [finding for name, found in surface.items() for finding in _module(name, found, others)]


def _module(name: str, surface: dict[str, Any], others: Classes) -> Iterator[Finding]:
    try:
        module = importlib.import_module(f"penstock.{name}")
    except UnsupportedFeatureError as error:
        held = [*surface.get("classes", {}), *surface.get("functions", {})]
        yield Finding(name, "", Verdict.REFUSED, _why(error))
        yield from (Finding(name, inner, Verdict.REFUSED, _why(error)) for inner in held)
        return
    except ImportError as error:
        yield Finding(name, "", Verdict.WRONG, str(error))
        return
    for exported in surface.get("all", []):
        if exported not in surface.get("classes", {}):
            yield _there(name, exported, module)
    for function, parameters in surface.get("functions", {}).items():
        found = _there(name, function, module)
        if found.verdict is Verdict.WORKS:
            found = _callable(name, function, getattr(module, function), parameters)
        yield found
    for inner, described in surface.get("classes", {}).items():
        yield from _class(name, inner, module, described, others)


def _there(module: str, name: str, owner: Any) -> Finding:
    try:
        getattr(owner, name.rpartition(".")[2])
    except UnsupportedFeatureError as error:
        return Finding(module, name, Verdict.REFUSED, _why(error))
    except AttributeError:
        return Finding(module, name, Verdict.WRONG, "it is not there")
    return Finding(module, name, Verdict.WORKS)


def _class(
    module: str, name: str, owner: Any, surface: dict[str, Any], others: Classes
) -> Iterator[Finding]:
    found = _there(module, name, owner)
    if found.verdict is not Verdict.WORKS:
        yield found
        return
    cls = getattr(owner, name.rpartition(".")[2])
    cls = IMPLEMENTATIONS.get(f"{module}.{name}", cls)
    constructor = _constructor(module, name, cls, surface.get("methods", {}).get("__init__"))
    if (reason := reason_of(cls.__init__)) is not None:
        yield Finding(module, name, Verdict.REFUSED, reason)
        return
    inherited = _inherited(surface, others)
    more = _more(name, cls, surface, others)
    yield Finding(
        module, name, Verdict.MORE if more else Verdict.WORKS, ", ".join(f"`{m}`" for m in more)
    )
    if constructor is not None:
        yield constructor
    for attribute in surface.get("attributes", []):
        yield _there(module, f"{name}.{attribute}", cls)
    for method, parameters in surface.get("methods", {}).items():
        if method != "__init__":
            inner = _there(module, f"{name}.{method}", cls)
            if inner.verdict is Verdict.WORKS:
                inner = _method(module, f"{name}.{method}", cls, parameters)
            if inner.verdict is Verdict.WRONG and (base := inherited.get(method)) is not None:
                # PyFlink's own subclass renames the base's parameter, so nobody can name it.
                inner = _method(module, f"{name}.{method}", cls, base)
            yield inner
    for method, parameters in inherited.items():
        # The base is compared by itself, so only what the subclass lacks is of interest.
        if method not in surface.get("methods", {}) and method != "__init__":
            inner = _there(module, f"{name}.{method}", cls)
            if inner.verdict is Verdict.WORKS:
                inner = _method(module, f"{name}.{method}", cls, parameters)
            if inner.verdict in (Verdict.REFUSED, Verdict.WRONG):
                yield inner
    nested = surface.get("nested", {})
    within = {n: (found, getattr(cls, n)) for n, found in nested.items() if hasattr(cls, n)}
    for inner_name, described in nested.items():
        yield from _class(module, f"{name}.{inner_name}", cls, described, {**others, **within})


def _constructor(module: str, name: str, cls: type, parameters: str | None) -> Finding | None:
    if parameters is None:
        return None
    wanted = Parameters.parse(parameters)
    full = f"{name}.__init__"
    if wanted.needs_java or (wanted.required and wanted.required <= JAVA_ARGUMENTS):
        return Finding(module, full, Verdict.REFUSED, WRAPS_JAVA)
    if cls.__init__ is object.__init__ or isinstance(cls, type(Enum)):
        found = Parameters((), frozenset())
    else:
        found = Parameters.of(cls.__init__).without_self()
    return _fitting(module, full, wanted.without_java(), found, "")


def _method(module: str, name: str, cls: type, parameters: str) -> Finding:
    member = inspect.getattr_static(cls, name.rpartition(".")[2])
    return _callable(
        module,
        name,
        getattr(cls, name.rpartition(".")[2]),
        parameters,
        bound=isinstance(member, staticmethod | classmethod),
    )


def _callable(
    module: str, name: str, function: Any, parameters: str, bound: bool = True
) -> Finding:
    if (reason := reason_of(function)) is not None:
        return Finding(module, name, Verdict.REFUSED, reason)
    if not callable(function):
        return Finding(module, name, Verdict.WRONG, "it cannot be called")
    if _only_refuses(function):
        return Finding(module, name, Verdict.WRONG, "only raises, and is not marked as refused")
    found = Parameters.of(function)
    text = inspect.getdoc(function) or ""
    no_effect = text.partition(": ")[2].partition("\n")[0] if text.startswith(NO_EFFECT) else ""
    return _fitting(
        module,
        name,
        Parameters.parse(parameters).without_java(),
        found if bound else found.without_self(),
        no_effect,
    )


def _only_refuses(function: Any) -> bool:
    """Whether an error about what is not supported is all that there is to it."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError):
        return False
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef), function
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    return (
        len(body) == 1
        and isinstance(body[0], ast.Raise)
        and "UnsupportedFeatureError" in ast.unparse(body[0])
    )


def _fitting(
    module: str, name: str, wanted: Parameters, found: Parameters, no_effect: str
) -> Finding:
    if (problem := misfit(wanted, found)) is not None:
        return Finding(module, name, Verdict.WRONG, problem)
    if more := extra(wanted, found):
        note = ", ".join(f"`{parameter}`" for parameter in more)
        return Finding(module, name, Verdict.MORE, note, no_effect)
    return Finding(module, name, Verdict.WORKS, no_effect=no_effect)


def _bases(surface: dict[str, Any], others: Classes) -> Iterator[tuple[dict[str, Any], Any]]:
    """The base classes in PyFlink, each as described and as it is here, bases of bases included."""
    for name in surface.get("bases", []):
        outer, *inner = name.split(".")
        if outer not in others:
            continue
        described, here = others[outer]
        for part in inner:
            nested = described["nested"]
            others = {**others, **{n: (nested[n], getattr(here, n)) for n in nested}}
            described, here = others[part]
        yield described, here
        yield from _bases(described, others)


def _inherited(surface: dict[str, Any], others: Classes) -> dict[str, str]:
    """The methods of the bases."""
    found: dict[str, str] = {}
    for base, _ in _bases(surface, others):
        found = {**base.get("methods", {}), **found}
    return found


def _more(name: str, cls: type, surface: dict[str, Any], others: Classes) -> list[str]:
    """The public methods that PyFlink's class has not, and that are not those of a base here."""
    known: set[str] = set()
    for described in (surface, *(base for base, _ in _bases(surface, others))):
        for part in ("attributes", "methods", "nested"):
            known.update(described.get(part, []))
    for _, base in _bases(surface, others):
        known.update(name for name in dir(base) if reason_of(getattr(base, name, None)) is None)
    return sorted(
        member
        for member in dir(cls)
        if not member.startswith("_")
        and member not in known | ENGINE_METHODS
        and f"{name}.{member}" not in OLD_METHODS
        and callable(getattr(cls, member))
        and reason_of(getattr(cls, member)) is None
        and not hasattr(Enum, member)
    )


def _why(error: UnsupportedFeatureError) -> str:
    return str(error).partition("is not supported; ")[2]
