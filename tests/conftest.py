"""Settings for all tests."""

import os

import pytest
from hypothesis import settings

# A machine that is busy otherwise is no failure. What is found in CI must be found again there.
settings.register_profile("penstock", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("penstock")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-on-spark",
        action="store_true",
        help="run every case of a test with parameters on Spark, not just the last one",
    )
