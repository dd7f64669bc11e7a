"""Checks of what users hand to `env.side_input`, as far as it can be known before it is read."""

from __future__ import annotations

from typing import Any

from penstock.common.time import to_millis
from penstock.datastream._stream_arguments import non_empty, selector_of
from penstock.datastream.side_input import SideInput
from penstock.driver.side_tables import check_frame, is_spark_frame
from penstock.errors import InvalidArgumentError, SideInputError
from penstock.graph.location import user_location


def side_input_of(table: Any, key: Any, refresh: Any, name: Any, record_type: Any) -> SideInput:
    side = SideInput(
        name=non_empty("the name of a side input", name),
        key=None if key is None else selector_of("side_input", key),
        key_columns=_names(key),
        refresh_millis=_refresh_millis(refresh),
        record_type=record_type,
        location=str(user_location()),
        table=table,
    )
    if is_spark_frame(table):
        try:
            check_frame(side, table)
        except SideInputError as error:
            raise InvalidArgumentError(str(error)) from None
    return side


def _names(key: Any) -> tuple[str, ...]:
    parts = key if isinstance(key, list | tuple) else (key,)
    return tuple(part for part in parts if isinstance(part, str))


def _refresh_millis(refresh: Any) -> int | None:
    if refresh is None:
        return None
    if isinstance(refresh, str):
        if refresh != "epoch":
            raise InvalidArgumentError.of(
                "refresh", "a Duration or timedelta, 'epoch' or None", refresh
            )
        return 0
    millis = to_millis(refresh, "refresh")
    if millis < 1:
        raise InvalidArgumentError(
            f"refresh must be at least a millisecond, got {refresh!r}; for a table that is read in "
            "every epoch say 'epoch'"
        )
    return millis
