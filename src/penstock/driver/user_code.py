"""The user's code that runs on the driver: its errors name the operator and its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError
from penstock.graph.stream_graph import Node
from penstock.runtime.attribution import located, user_error
from penstock.runtime.physical import PhysicalOperator


@contextmanager
def user_code_of(operator: PhysicalOperator | Node) -> Iterator[None]:
    """What is raised within belongs to this operator."""
    try:
        yield
    except PenstockError as error:
        located(error, operator.name, str(operator.location))
        raise
    except (Exception, SystemExit) as error:  # a sys.exit() would end the job without a word
        raise user_error(operator.name, str(operator.location), error) from error
