"""A job that its user controls from outside: counts numbers as far as the gate lets it."""

import sys
from pathlib import Path

from gated import counts

from penstock.datastream import StreamExecutionEnvironment

place = Path(sys.argv[1])
env = StreamExecutionEnvironment.get_execution_environment()
counts(env, place / "gate", place / "out")
env.execute("counting")
