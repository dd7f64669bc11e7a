"""Epochs without a batch of Spark's: one plan of calls to Python's sources, run again and again.

Spark need not look for data here, so there is no streaming query: no logs of its own to write, no
plan to make anew for every epoch. What was planned once is copied, since a plan that has run keeps
the output of its exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.driver.spark_stages import PAYLOAD_AT

# Rows are buffers here, of which there are few: to generate code for them costs more than it saves.
_FOR_BUFFERS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class RepeatedCalls:
    """Planned when it is first needed, in a copy of the session: its settings disturb nobody."""

    def __init__(
        self,
        session: SparkSession,
        settings: Callable[[], AbstractContextManager[None]],
        make: Callable[[SparkSession], DataFrame],
        description: str,
    ) -> None:
        self._session = session
        self._settings = settings
        self._make = make
        self._description = description
        self._plan: Any = None
        self._copy: Any = None
        self._properties: Any = None
        self._context: Any = None

    def payloads(self) -> list[bytes]:
        """Run all stages; what the rows of the last one carry."""
        if self._plan is None:
            self._prepare()
        with self._in_copy():
            rows = self._plan.clone().executeCollect()
            return [row.getBinary(PAYLOAD_AT) for row in rows]

    def _prepare(self) -> None:
        session = self._session
        with self._settings():
            copy = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
            for key, value in _FOR_BUFFERS.items():
                copy.conf.set(key, value)
            frame = self._make(copy)
        jvm: Any = session._jvm
        properties = jvm.java.util.Properties()
        for key, value in copy.conf.getAll.items():
            if key.startswith("spark"):
                properties.setProperty(key, value)
        properties.setProperty("spark.job.description", self._description)
        self._properties = properties
        self._copy = copy
        self._context = session.sparkContext._jsc.sc()
        sessions = jvm.org.apache.spark.sql.classic.SparkSession
        self._active = sessions.getActiveSession
        self._set_active = sessions.setActiveSession
        self._clear_active = sessions.clearActiveSession
        self._plan = frame._jdf.queryExecution().executedPlan()

    @contextmanager
    def _in_copy(self) -> Iterator[None]:
        """What Spark does around a plan that it runs itself: planners ask the active session for
        settings, tasks the properties of the job."""
        context = self._context
        properties, active = context.getLocalProperties(), self._active()
        ours = properties.clone()
        ours.putAll(self._properties)
        context.setLocalProperties(ours)
        self._set_active(self._copy._jsparkSession)
        try:
            yield
        finally:
            context.setLocalProperties(properties)
            if active.isDefined():
                self._set_active(active.get())
            else:
                self._clear_active()
