"""Settings for all tests."""

import os

from hypothesis import settings

# A machine that is busy otherwise is no failure. What is found in CI must be found again there.
settings.register_profile("penstock", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("penstock")
