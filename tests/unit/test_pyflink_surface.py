"""Every public name of PyFlink's is there and can be called alike, or refuses and says why."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock import pyflink_names
from penstock.errors import RefusedImportError, RefusedNameError, UnsupportedFeatureError
from penstock.refusals import reason_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scripts() -> tuple[ModuleType, ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        names = ("pyflink_surface", "update_compatibility_page")
        comparing, writing = (importlib.import_module(name) for name in names)
    return comparing, writing


@pytest.fixture(scope="module")
def findings(scripts: tuple[ModuleType, ModuleType]) -> list[Any]:
    found: list[Any] = scripts[0].compare()
    return found


def test_nothing_is_missing(findings: list[Any]) -> None:
    wrong = [
        f"{finding.module}.{finding.name} {finding.note}"
        for finding in findings
        if finding.verdict.name == "WRONG"
    ]
    assert wrong == []
    assert len(findings) > 1300, "the surface has been cut short"


def test_the_page_is_up_to_date(
    scripts: tuple[ModuleType, ModuleType], findings: list[Any]
) -> None:
    _, writing = scripts
    assert writing.PAGE.read_text() == writing.page(findings), (
        "run scripts/update_compatibility_page.py"
    )


def test_every_refusal_has_a_reason(findings: list[Any]) -> None:
    for finding in findings:
        if finding.verdict.name == "REFUSED":
            assert len(finding.note) > 20, finding


def test_a_refused_method_refuses(findings: list[Any]) -> None:
    """What the page says of methods is what they do."""
    called = 0
    for finding in findings:
        owner, _, name = finding.name.rpartition(".")
        if finding.verdict.name != "REFUSED" or not owner or name == "__init__":
            continue
        cls: Any = importlib.import_module(f"penstock.{finding.module}")
        for part in owner.split("."):
            cls = getattr(cls, part)
        method = inspect.getattr_static(cls, name, None)
        if reason_of(method) is None:
            continue
        with pytest.raises(UnsupportedFeatureError) as caught:
            method()
        assert finding.note in str(caught.value)
        called += 1
    assert called > 10


@pytest.mark.parametrize(
    ("wanted", "there", "problem"),
    [
        ("(self, a, b=)", lambda a, b=1, c=2: None, None),
        ("(self, a, *b)", lambda a, *b: None, None),
        ("(self, a, *, b=)", lambda a, b=1: None, None),
        ("(self, a=, j_b=)", lambda a=1: None, None),
        ("(self, a, b)", lambda b, a: None, "takes (b, a), not (a, b)"),
        ("(self, a, b)", lambda a: None, "takes (a), not (a, b)"),
        ("(self, a, b=)", lambda a, b: None, "needs b"),
        ("(self, a)", lambda a, c: None, "needs c"),
        ("(self, *a)", lambda a=1: None, "does not take any number of arguments"),
        ("(self, **a)", lambda a=1: None, "does not take any keyword"),
        ("(self, *, b=)", lambda: None, "does not take b"),
    ],
)
def test_compatible_signatures(
    scripts: tuple[ModuleType, ModuleType], wanted: str, there: Any, problem: str | None
) -> None:
    parameters = scripts[0].Parameters
    found = scripts[0].misfit(parameters.parse(wanted).without_java(), parameters.of(there))
    assert found == problem


@pytest.mark.parametrize("module", pyflink_names.ABSENT_MODULES)
def test_an_absent_module_explains(module: str) -> None:
    with pytest.raises(RefusedImportError, match=f"{module} is not supported; ") as caught:
        importlib.import_module(module)
    assert caught.value.name == module
    assert pyflink_names.ABSENT_MODULES[module] in str(caught.value)


def test_imports_of_absent_things_explain() -> None:
    with pytest.raises(RefusedImportError, match=r"readStream.format\('aws-kinesis'\)"):
        from penstock.datastream.connectors.kinesis import FlinkKinesisConsumer  # noqa: F401
    with pytest.raises(RefusedImportError, match="Spark SQL"):
        from penstock.table.expressions import col  # noqa: F401
    with pytest.raises(RefusedImportError, match="not export it"):
        from penstock.datastream.functions import InternalWindowFunction  # noqa: F401
    with pytest.raises(RefusedImportError, match="row G1"):
        from penstock.datastream.connectors import FlinkKafkaConsumer  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'penstock\.nothing'"):
        importlib.import_module("penstock.nothing")
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from penstock.datastream.functions import Nothing  # noqa: F401


def test_an_absent_attribute_explains() -> None:
    functions = importlib.import_module("penstock.datastream.functions")
    with pytest.raises(RefusedNameError, match="pass a callable"):
        functions.FunctionWrapper
    assert not hasattr(functions, "FunctionWrapper")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        functions.nothing


def test_the_tables_name_nothing_that_exists() -> None:
    """Who adds such a module or name takes it out of the table."""
    src = ROOT / "src"
    for module in pyflink_names.ABSENT_MODULES:
        path = src.joinpath(*module.split("."))
        assert not path.with_suffix(".py").exists(), module
        assert not (path / "__init__.py").exists(), module
    for module, names in pyflink_names.ABSENT_NAMES.items():
        assert not set(names) & set(vars(importlib.import_module(module))), module


def test_moved_names_have_a_home() -> None:
    for module, names in pyflink_names.MOVED_NAMES.items():
        for name, home in names.items():
            if home in pyflink_names.ABSENT_MODULES:
                continue
            with pytest.warns(DeprecationWarning, match=f"{name} is now {home}.{name}") as caught:
                found = getattr(importlib.import_module(module), name)
            assert found is getattr(sys.modules[home], name)
            assert caught[0].filename == __file__
