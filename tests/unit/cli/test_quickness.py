"""Short commands load little: a shell asks at every TAB, a script in a loop."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pyarrow", "pandas", "numpy", "rich", "yaml", "penstock.runtime", "msgspec")
CODE = """
import sys
from penstock.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["list", "--all", "--json"], ["info", "x"], ["version"], ["run", "--help"],
     ["checkpoints"], ["savepoint", "list"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_heavy_is_loaded(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True
    )
    loaded = done.stderr.splitlines()[-1].split()
    assert "penstock.cli.main" in loaded
    assert [name for name in HEAVY if name in loaded] == []
