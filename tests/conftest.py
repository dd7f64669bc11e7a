"""Settings for all tests."""

from hypothesis import settings

# A machine that is busy otherwise is no failure.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
