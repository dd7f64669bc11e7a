"""The command line. Loads only what reads the arguments; each command loads what it needs."""

from penstock.cli.main import main

__all__ = ["main"]
