"""Settings for all tests."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A machine that is busy otherwise is no failure. What is found in CI must be found again there.
settings.register_profile("penstock", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("penstock")


# A worker of xdist has no file, and would pass for a notebook, all of whose directory is the
# program's: every job would look through all tests and ship them.
_main = sys.modules["__main__"]
if getattr(_main, "__file__", None) is None:
    _main.__file__ = pytest.__file__


@pytest.fixture(autouse=True, scope="session")
def _own_state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test job is to be seen among the user's; processes that tests start inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        # Short, as a home is: sockets have short paths.
        patch.setenv("PENSTOCK_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.delenv("PENSTOCK_CONF", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_disks() -> Iterator[None]:
    """Here processes die, not machines, and disks are most of what small files cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-on-spark",
        action="store_true",
        help="run every case of a test with parameters on Spark, not just the last one",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with parameters, Spark runs the last case; the local executor runs all of them.

    What differs between the two is how a job is run, hardly ever what an operator makes of its
    parameters, and a case takes seconds on Spark.
    """
    if config.getoption("all_on_spark"):
        return
    last: dict[str, pytest.Item] = {}
    spare: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("spark") is not None:
            name = item.nodeid.partition("[")[0]
            if name in last:
                spare.append(last[name])
            last[name] = item
    if spare:
        config.hook.pytest_deselected(items=spare)
        gone = set(spare)
        items[:] = [item for item in items if item not in gone]
