"""Sources and sinks. Names load their module when first used, to spare workers the rest."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.pyflink_names import find_name

if TYPE_CHECKING:
    from penstock.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

_HOME = dict.fromkeys(__all__, "penstock.datastream.connectors.base")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        return find_name(__name__, name, sys._getframe(1))
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
