"""What PyFlink keeps under this path and is not about Java."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.common.typeinfo import TypeInformation
from penstock.pyflink_names import missing_name

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """A source or schema that knows the type of its records: nobody need declare it again."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation: ...


__getattr__ = missing_name(__name__)
