"""Which files of a subtask can be read one after the other, because each goes on where the last
one ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.storage.checkpoint_layout import StateFileName, parse_state_file
from penstock.storage.file_info import FileInfo


def sorted_runs(inputs: Sequence[FileInfo]) -> list[list[FileInfo]]:
    """Files in runs that can be read one after the other: the parts of one result are such.

    The parts of a spilled segment are not, though their names are alike: they overlap, and the
    later one wins.
    """
    runs: list[list[FileInfo]] = []
    before: StateFileName | None = None
    for info in inputs:
        name = parse_state_file(info.path)
        if before is not None and name is not None and _is_next_part(before, name):
            runs[-1].append(info)
        else:
            runs.append([info])
        before = name
    return runs


def _is_next_part(before: StateFileName, name: StateFileName) -> bool:
    if name.kind == "segment" or before.part is None or name.part is None:
        return False
    # Rising numbers only: after rescaling a part may be named once per former owner.
    return replace(before, part=name.part) == name and before.part < name.part
