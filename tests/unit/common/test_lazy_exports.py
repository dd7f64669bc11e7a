"""`penstock.common` offers PyFlink's names and loads each only when asked."""

import subprocess
import sys

import pytest

import penstock
from penstock import common


def test_every_name_is_there():
    assert [name for name in common.__all__ if not hasattr(common, name)] == []
    assert sorted(common._MODULE_OF) == sorted(common.__all__)
    assert set(common.__all__) <= set(dir(common))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        common.Nothing
    assert penstock.__version__ == "0.1.0"


def test_a_row_does_not_load_the_rest():
    code = (
        "import sys; from penstock.common import Row; "
        "print(*(m for m in sys.modules if m.startswith(('penstock.', 'msgspec', 'pyspark'))))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {m for m in out.stdout.split() if not m.startswith("penstock.errors.")}
    assert loaded == {
        "penstock.common",
        "penstock.errors",
        "penstock.refusals",
        "penstock.common.types",
    }
