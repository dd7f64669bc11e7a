"""Imports point downward only. Section by section what docs/architecture.md draws.

Imports under `if TYPE_CHECKING` are free: they exist for the type checker alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

# From the bottom up; a module belongs to the entry with the longest matching name.
LAYERS = [
    {"penstock", "penstock.version", "penstock.common", "penstock.errors", "penstock.metrics",
     "penstock.options", "penstock.launch", "penstock.config_file", "penstock.compat",
     "penstock.deprecation", "penstock.pyflink_names", "penstock.refusals", "penstock.datastream"},
    {"penstock.storage"},
    {"penstock.state"},
    {"penstock.graph", "penstock.runtime"},
    {"penstock.plan"},
    {"penstock.driver"},
    {"penstock.datastream.stream_execution_environment", "penstock.datastream.data_stream",
     "penstock.datastream._data_stream", "penstock.datastream.keyed_stream",
     "penstock.datastream.data_stream_sink", "penstock.datastream._operator_settings",
     "penstock.datastream._environment_settings", "penstock.datastream._dependency_settings",
     "penstock.datastream._stream_arguments", "penstock.datastream._side_arguments",
     "penstock.datastream._stream_ends", "penstock.datastream.spark_interface",
     "penstock.datastream._rolling_aggregates", "penstock.datastream._columns",
     "penstock.datastream.aggregates",
     "penstock.datastream.windowed_stream", "penstock.datastream.joined_streams",
     "penstock.datastream.connected_streams", "penstock.datastream.broadcast_stream",
     "penstock.datastream.interval_join", "penstock.datastream.iterative_stream",
     "penstock.datastream.split_stream",
     "penstock.datastream.derived_streams", "penstock.datastream.async_data_stream"},
    {"penstock.cli", "penstock.program", "penstock.rest", "penstock.testing", "penstock.demo",
     "penstock.state_processor", "penstock.__main__"},
]  # fmt: skip
FLUENT = 6
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

SPARK_MAY_BE_IMPORTED_BY = (
    "penstock.driver.spark_",
    "penstock.datastream.spark_",
    "penstock.datastream.connectors.spark",
    "penstock.state_processor.spark_",
)


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    in_function: bool


def layer_of(module: str) -> int:
    """The layer of a module; a module directly under `penstock` must be listed by name."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        level = LEVEL.get(".".join(parts[:length]))
        if level is not None:
            return level
    if module == "penstock":
        return 0
    raise AssertionError(f"{module} has no layer; add it to LAYERS in {__file__}")


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    yield from _walk(ast.parse(source).body, module, is_package, in_function=False)


def _walk(
    nodes: list[ast.stmt], module: str, is_package: bool, in_function: bool
) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk(node.orelse, module, is_package, in_function)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, in_function)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", node.lineno, in_function)
        else:
            inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for children in ("body", "orelse", "finalbody"):
                yield from _walk(getattr(node, children, []), module, is_package, inside)
            for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
                yield from _walk(handler.body, module, is_package, inside)


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if is_package else module.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def target_layer(target: str, modules: set[str]) -> int:
    """The layer of an imported name. Names of the lazy `penstock.datastream` count as fluent."""
    if target in modules:
        return layer_of(target)
    package = target.rpartition(".")[0]
    return FLUENT if package == "penstock.datastream" else layer_of(package)


def problems_in(source: str, module: str, is_package: bool, modules: set[str]) -> list[str]:
    """What is wrong with a module's imports, one sentence each."""
    found = []
    for imported in imports_of(source, module, is_package):
        where = f"{module}:{imported.line}"
        root = imported.target.split(".")[0]
        if root in ("pyspark", "py4j") and not module.startswith(SPARK_MAY_BE_IMPORTED_BY):
            found.append(f"{where} imports {root}; only Spark executor and connectors may")
        if root != "penstock":
            continue
        if imported.in_function:
            found.append(f"{where} imports {imported.target} inside a function")
        if target_layer(imported.target, modules) > layer_of(module):
            found.append(f"{where} imports {imported.target} from a layer above")
    return found


def all_modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SRC / "penstock").rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = all_modules()


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downward(module: str) -> None:
    path = MODULES[module]
    problems = problems_in(path.read_text(), module, path.name == "__init__.py", {*MODULES, *LEVEL})
    assert problems == []


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("penstock.state.x", "from penstock.runtime.timers import T", "from a layer above"),
        ("penstock.state.x", "from ..runtime import timers", "from a layer above"),
        ("penstock.state.x", "import penstock.driver.job", "from a layer above"),
        ("penstock.runtime.x", "from penstock.datastream import DataStream", "a layer above"),
        ("penstock.datastream.connectors.x", "import penstock.storage.store", "a layer above"),
        ("penstock.driver.x", "def f():\n  from penstock.errors import E", "inside a function"),
        ("penstock.driver.x", "try:\n  import pyspark\nexcept E: pass", "imports pyspark"),
        ("penstock.driver.x", "try: pass\nexcept E:\n  import py4j.x", "imports py4j"),
        ("penstock.driver.x", "if TYPE_CHECKING: pass\nelse:\n  import pyspark", "imports pyspark"),
    ],
)
def test_finds(module: str, source: str, problem: str) -> None:
    (found,) = problems_in(source, module, False, set(LEVEL))
    assert problem in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("penstock.runtime.x", "if TYPE_CHECKING:\n  import pyspark, penstock.driver.job"),
        ("penstock.driver.spark_executor", "def f():\n  from pyspark.sql import SparkSession"),
        ("penstock.datastream.connectors.spark", "import pyspark"),
        ("penstock.cli", "from penstock.datastream import DataStream"),
        ("penstock.runtime.x", "from penstock.datastream.functions import MapFunction"),
        ("penstock.runtime.x", "from penstock import errors"),
        ("penstock.datastream.data_stream", "from penstock.driver.job import Job"),
    ],
)
def test_allows(module: str, source: str) -> None:
    assert problems_in(source, module, False, set(LEVEL)) == []


def test_a_new_package_needs_a_layer() -> None:
    with pytest.raises(AssertionError, match="has no layer"):
        layer_of("penstock.novelty.x")
