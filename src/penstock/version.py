"""The version, where PyFlink programs look for its."""

from penstock import __version__

__all__ = ["__version__"]
