"""Make tests/data/pyflink_surface.json: the names and parameters of PyFlink's public API.

Run with the signatures that were taken from an installed PyFlink:
`python scripts/update_pyflink_surface.py pyflink-2.3-signatures.json`.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

SURFACE = Path(__file__).parents[1] / "tests" / "data" / "pyflink_surface.json"
PARTS = ("pyflink.common", "pyflink.datastream", "pyflink.metrics")
KINDS = ("abstract", "async", "class", "property", "static")


def compact(signature: str) -> tuple[str, str]:
    """A signature as (name, parameters): `(self, a, b=, *c)`; annotations and defaults left out."""
    words = signature.split(" ")
    while words[0] in KINDS:
        words.pop(0)
    function = ast.parse(f"def {' '.join(words)}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    named = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    for index in range(len(named) - len(arguments.defaults), len(named)):
        named[index] += "="
    if arguments.vararg or arguments.kwonlyargs:
        named.append("*" + (arguments.vararg.arg if arguments.vararg else ""))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        named.append(argument.arg + ("=" if default else ""))
    if arguments.kwarg:
        named.append("**" + arguments.kwarg.arg)
    return function.name, f"({', '.join(named)})"


def functions(signatures: list[str]) -> dict[str, str]:
    found = dict(compact(signature) for signature in signatures)
    return {
        name: parameters
        for name, parameters in found.items()
        if name == "__init__" or not name.startswith("_")
    }


def described(found: dict[str, Any]) -> dict[str, Any]:
    parts = {
        "bases": [base.partition("[")[0] for base in found["bases"]],
        "attributes": found.get("attrs", []),
        "methods": functions(found["methods"]),
        "nested": {name: described(inner) for name, inner in found.get("nested", {}).items()},
    }
    return {part: value for part, value in parts.items() if value}


def surface(signatures: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for module, names in signatures.items():
        if not module.startswith(PARTS):
            continue
        parts = {
            "all": names["__all__"] or [],
            "functions": functions(names["functions"]),
            "classes": {
                name: described(inner)
                for name, inner in names["classes"].items()
                if not name.startswith("_")
            },
        }
        found[module.partition(".")[2]] = {part: value for part, value in parts.items() if value}
    return found


def written(found: dict[str, Any], depth: int = 0) -> str:
    """As JSON with a line for each class."""
    if depth == 3:
        return json.dumps(found)
    start = "\n" + " " * (depth + 1)
    lines = (
        f"{start}{json.dumps(name)}: "
        + (written(inner, depth + 1) if isinstance(inner, dict) else json.dumps(inner))
        for name, inner in found.items()
    )
    end = "\n" + " " * depth
    return f"{{{','.join(lines)}{end}}}" + ("" if depth else "\n")


if __name__ == "__main__":
    signatures = json.loads(Path(sys.argv[1]).read_text())
    SURFACE.write_text(written(surface(signatures)))
