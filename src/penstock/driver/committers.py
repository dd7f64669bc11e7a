"""The sinks' commits: what tasks prepared in an epoch is made visible, on the driver."""

from __future__ import annotations

import base64
import contextlib
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from penstock.datastream.connectors.base import Committable, Committer
from penstock.driver.user_code import user_code_of
from penstock.errors import InvalidArgumentError, SinkCommitError
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sinks import WriteSink
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan
from penstock.storage.manifest import Manifest

Commit = Callable[[list[Committable]], None]
Prepared = dict[str, list[Committable]]
"""By the sink's uid."""


class Committers:
    """The committers of all sinks of a plan; collectors, by node, stand in for a sink's own."""

    def __init__(self, plan: PhysicalPlan, collectors: Mapping[int, Commit]) -> None:
        self._commits: dict[str, tuple[PhysicalOperator, Commit]] = {}
        self._made: list[Committer] = []
        for vertex in plan.vertices:
            for operator in vertex.operators:
                if isinstance(operator.operator, WriteSink):
                    commit = collectors.get(operator.node_id) or self._make(operator)
                    if commit is not None:
                        self._commits[operator.uid] = (operator, commit)

    def _make(self, operator: PhysicalOperator) -> Commit | None:
        with user_code_of(operator):
            made: Any = operator.operator.sink.create_committer()
            if made is None:
                return None
            if not isinstance(made, Committer):
                raise InvalidArgumentError.of(
                    "the result of create_committer()", "a Committer or None", made
                )
        self._made.append(made)
        return made.commit

    def commit(self, prepared: Prepared) -> None:
        """Commit for every sink, even if one fails; what is committed is taken out."""
        failed: SinkCommitError | None = None
        for uid, items in list(prepared.items()):
            try:
                self._commit(uid, items)
                del prepared[uid]
            except SinkCommitError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _commit(self, uid: str, items: list[Committable]) -> None:
        if uid not in self._commits:
            return
        operator, commit = self._commits[uid]
        try:
            commit(items)
        except (Exception, SystemExit) as error:
            sink = f"{operator.name} ({operator.location})"
            raise SinkCommitError.of(sink, items[0].epoch, error) from error

    def close(self) -> None:
        for committer in self._made:
            with contextlib.suppress(Exception):
                committer.close()


def prepared_by(acknowledgements: list[Acknowledgement], epoch: int) -> Prepared:
    """What the tasks of an epoch have prepared."""
    found: Prepared = {}
    for a in sorted(acknowledgements, key=lambda a: (a.vertex, a.subtask)):
        for uid, items in a.committables.items():
            found.setdefault(uid, []).extend(
                Committable(epoch, a.subtask, a.token, pickle.loads(item)) for item in items
            )
    return found


def stored_in(manifest: Manifest) -> Prepared:
    """What a manifest keeps for the case that the driver died before it was committed."""
    return {
        uid: [
            Committable(
                item["epoch"],
                item["subtask"],
                item["attempt"],
                pickle.loads(base64.b64decode(item["data"])),
            )
            for item in items
        ]
        for uid, items in manifest.committables.items()
    }
