"""`pyflink` as another name of `penstock`."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest

import penstock.datastream
from penstock import compat
from penstock.errors import InvalidProgramError, RefusedImportError


@pytest.fixture(autouse=True)
def _leave_as_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = dict(sys.modules)
    yield
    sys.modules.clear()
    sys.modules.update(before)


def test_modules_and_classes_are_the_same_objects() -> None:
    compat.install()
    import pyflink.datastream as theirs
    import pyflink.metrics
    from pyflink.common import Types
    from pyflink.datastream.window import TumblingEventTimeWindows

    window = importlib.import_module("penstock.datastream.window")
    assert theirs is penstock.datastream
    assert sys.modules["pyflink.datastream.window"] is window
    assert TumblingEventTimeWindows is window.TumblingEventTimeWindows
    assert pyflink.metrics.MetricGroup is importlib.import_module("penstock.metrics").MetricGroup
    assert Types.__module__ == "penstock.common.typeinfo"


def test_a_module_still_knows_where_it_comes_from() -> None:
    """Else it could not be reloaded, nor its source be found."""
    compat.install()
    window = importlib.import_module("pyflink.datastream.window")

    assert window.__name__ == "penstock.datastream.window"
    assert window.__spec__ is not None
    assert window.__spec__.name == "penstock.datastream.window"
    assert window.__spec__.origin == window.__file__


def test_pickles_carry_our_names() -> None:
    """Whoever reads a checkpoint need not have the aliases."""
    compat.install()
    functions = importlib.import_module("pyflink.datastream.functions")

    pickled = pickle.dumps(functions.MapFunction) + cloudpickle.dumps(lambda: functions)

    assert b"penstock.datastream.functions" in pickled
    assert b"pyflink" not in pickled


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("pyflink.table", "pyflink.table is not supported; tables are Spark's"),
        ("pyflink.table.udf", "tables are Spark's"),
        ("pyflink.datastream.connectors.pulsar", "^pyflink.datastream.connectors.pulsar is not"),
        ("pyflink.driver", "of PyFlink there are pyflink.common, pyflink.datastream"),
        ("pyflink.datastream.novelty", "Penstock has no penstock.datastream.novelty"),
    ],
)
def test_what_is_not_there_says_why(module: str, reason: str) -> None:
    compat.install()
    with pytest.raises(RefusedImportError, match=reason) as caught:
        importlib.import_module(module)
    assert isinstance(caught.value, ImportError)
    assert module.startswith(str(caught.value.name))


def test_what_a_module_needs_is_not_mistaken_for_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found")
    monkeypatch.setattr(penstock.datastream, "__path__", [str(tmp_path)])
    compat.install()
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        importlib.import_module("pyflink.datastream.broken")


def test_the_version_is_ours() -> None:
    compat.install()
    assert importlib.import_module("pyflink.version").__version__ == penstock.__version__


def test_twice_is_once() -> None:
    compat.install()
    before = list(sys.meta_path)
    compat.install()
    assert sys.meta_path == before
    assert compat.installed()


def test_too_late_if_pyflink_itself_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("pyflink")
    real.__file__ = "/somewhere/pyflink/__init__.py"
    monkeypatch.setitem(sys.modules, "pyflink", real)
    with pytest.raises(InvalidProgramError, match=r"/somewhere/.* before anything imports it"):
        compat.install()
    assert not compat.installed()
