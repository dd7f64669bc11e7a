"""How Structured Streaming writes its offsets and the logs of its file sources. Pure.

Offsets are lines of JSON behind a version and a line of metadata: `v1` has a line for each source
in their order, `v2` a line with each source's name. The log of a file source has a file for each
of its own batches, and at every tenth one that holds all before it.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

COMPACT_INTERVAL = 10
_LOG_FILE = re.compile(r"([0-9]+)(\.compact)?")
_NONE = "-"
# What Java leaves as it is in the path of a URI.
_PLAIN = "/_-!.~'()*,;:$&+=@"
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def offsets_by_name(text: str) -> dict[str, str]:
    """The offsets in a manifest, by the name of their source, or its number if it has none."""
    version, *lines = text.splitlines()
    if version == "v2":
        return dict(line.split(":", 1) for line in lines)
    return {str(i): line for i, line in enumerate(lines) if line != _NONE}


def offset_file(metadata: Mapping[str, Any], offsets: Mapping[str, str], names: Iterable[str],
                named: bool) -> str:  # fmt: skip
    """The file of a batch, for sources of these names in this order; those without an offset
    begin where they are told to."""
    conf = {**metadata.get("conf", {}), _EVOLUTION: str(named).lower()}
    about = {**metadata, "conf": conf}
    if named:
        about.setdefault("sourceMetadataInfo", {})
        lines = [f"{name}:{offsets[name]}" for name in names if name in offsets]
    else:
        about.pop("sourceMetadataInfo", None)
        lines = [offsets.get(name, _NONE) for name in names]
    return "\n".join(["v2" if named else "v1", json.dumps(about, separators=(",", ":")), *lines])


def metadata_of(offset_text: str) -> dict[str, Any]:
    """The metadata in a batch's file."""
    found: dict[str, Any] = json.loads(offset_text.splitlines()[1])
    return found


def last_log(offset: str) -> int | None:
    """How far a file source's log counts, None if the offset is not that of a file source."""
    try:
        found = json.loads(offset).get("logOffset")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


def is_log(name: str) -> bool:
    return _LOG_FILE.fullmatch(name) is not None


def missing_log(names: Iterable[str], last: int) -> str | None:
    """The first file that a log up to `last` lacks, if these are its files."""
    known = set(names)
    compacted = [int(name.partition(".")[0]) for name in known if name.endswith(".compact")]
    if any(number >= last for number in compacted):
        return None
    needed = (str(number) for number in range(max(compacted, default=-1) + 1, last + 1))
    return next((name for name in needed if name not in known), None)


def log_entries(files: Iterable[str], last: int) -> list[dict[str, Any]]:
    """What the files of a log say about batches up to `last`, each once, in their order."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for text in files:
        for line in text.splitlines()[1:]:
            entry = json.loads(line)
            if entry["batchId"] <= last:
                found[entry["batchId"], entry["path"]] = entry
    return [found[key] for key in sorted(found)]


def log_files(entries: Iterable[Mapping[str, Any]], last: int) -> dict[str, str]:
    """The files of a log with these entries, whose newest batch is `last`."""
    compacted = (last + 1) // COMPACT_INTERVAL * COMPACT_INTERVAL - 1
    lines: dict[str, list[str]] = {} if compacted < 0 else {f"{compacted}.compact": []}
    lines.update({str(batch): [] for batch in range(compacted + 1, last + 1)})
    for entry in entries:
        batch = entry["batchId"]
        name = f"{compacted}.compact" if batch <= compacted else str(batch)
        lines[name].append(json.dumps(entry, separators=(",", ":")))
    return {name: "\n".join(["v1", *found]) for name, found in lines.items()}


def uri_of(path: str) -> str:
    """The URI by which Spark calls a local path."""
    quoted = (c if c.isalnum() or c in _PLAIN or ord(c) > 127 else _quoted(c) for c in path)
    return "file://" + "".join(quoted)


def _quoted(character: str) -> str:
    return urllib.parse.quote(character, safe="")
