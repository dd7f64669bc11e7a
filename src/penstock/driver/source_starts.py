"""Where sources begin to read, as the configuration says it by uid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.datastream.connectors.base import StartFrom
from penstock.driver.user_code import user_code_of
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.graph.stream_graph import Node
from penstock.options import SOURCE_START
from penstock.runtime.operators.sources import PythonSource


def parse_starts(text: str | None) -> dict[str, StartFrom]:
    """`uid=where` for some sources, separated by commas."""
    found: dict[str, StartFrom] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        uid, separator, where = part.rpartition("=")
        if not separator or not uid.strip():
            raise InvalidArgumentError.of(SOURCE_START.key, "uid=where, …", part)
        found[uid.strip()] = StartFrom.parse(where)
    return found


def with_starts(nodes: tuple[Node, ...], starts: Mapping[str, StartFrom]) -> tuple[Node, ...]:
    """The program with its sources beginning there."""
    known = {node.uid for node in nodes if not node.inputs and node.uid}
    unknown = sorted(set(starts) - known)
    if unknown:
        raise InvalidArgumentError(
            f"{SOURCE_START.key} names {', '.join(unknown)}, and no source has such a uid; "
            f"there are {', '.join(sorted(known)) or 'none with a uid'}"
        )
    return tuple(_started(node, starts.get(node.uid or "")) for node in nodes)


def _started(node: Node, start: StartFrom | None) -> Node:
    if start is None:
        return node
    if not isinstance(node.operator, PythonSource):
        raise UnsupportedFeatureError.of(
            f"{SOURCE_START.key} for {node.name!r} ({node.location})",
            "it is a DataFrame of Spark's; say where it starts in its reader's options "
            "(startingTimestamp, startingOffsets, modifiedAfter …)",
        )
    with user_code_of(node):
        source = node.operator.source.starting_at(start)
    return replace(node, operator=replace(node.operator, source=source))
