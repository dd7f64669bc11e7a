"""Functions are opened in one place, which gives them their operator state first."""

from __future__ import annotations

import ast
from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "src" / "penstock" / "runtime"


def opening_calls() -> list[str]:
    """Where something's `open` is called with a runtime context."""
    return [
        f"{path.relative_to(RUNTIME)}"
        for path in sorted(RUNTIME.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "open"
        and any("context" in ast.unparse(argument) for argument in node.args)
    ]


def test_there_is_one_place() -> None:
    assert opening_calls() == ["operators/base.py"]
