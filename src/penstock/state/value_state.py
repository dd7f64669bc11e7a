"""Value, reducing and aggregating state: one live object per key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import AggregatingState, ReducingState, ValueState
from penstock.state.live import LiveTable
from penstock.state.ttl import Lifetime


class LiveValueState(ValueState[Any]):
    """The hot path: a read is a dict look-up, a write is a dict store."""

    def __init__(self, table: LiveTable) -> None:
        self._table = table
        self._scope = table.scope
        self._changed = table.changed

    def value(self) -> Any:
        return self._changed[self._scope.key]

    def update(self, value: Any) -> None:
        self._changed[self._scope.key] = value

    def clear(self) -> None:
        self._table.put(None)


class TypedValueState(LiveValueState):
    """Values of a declared type."""

    def __init__(self, table: LiveTable, convert: Callable[[Any], Any]) -> None:
        super().__init__(table)
        self._convert = convert

    def update(self, value: Any) -> None:
        self._changed[self._scope.key] = self._convert(value)


class ExpiringValueState(ValueState[Any]):
    """A value with a time to live."""

    def __init__(
        self, table: LiveTable, convert: Callable[[Any], Any] | None, lifetime: Lifetime
    ) -> None:
        self._table = table
        self._convert = convert
        self._lifetime = lifetime

    def value(self) -> Any:
        stamped = self._table.current()
        if stamped is None:
            return None
        seen, keep, changed = self._lifetime.read(stamped)
        if changed:
            self._table.put(keep)
        return seen

    def update(self, value: Any) -> None:
        if self._convert is not None:
            value = self._convert(value)
        self._table.put(None if value is None else self._lifetime.stamp(value))

    def clear(self) -> None:
        self._table.put(None)


class LiveReducingState(ReducingState[Any]):
    """Combines at once, so the state is one value."""

    def __init__(self, value: ValueState[Any], reduce: Callable[[Any, Any], Any]) -> None:
        self.below = value
        self._reduce = reduce

    def get(self) -> Any:
        return self.below.value()

    def add(self, value: Any) -> None:
        before = self.below.value()
        self.below.update(value if before is None else self._reduce(before, value))

    def clear(self) -> None:
        self.below.clear()

    def take(self) -> Any:
        """The current key's value, which is then gone: another key's will have it."""
        found = self.below.value()
        self.below.clear()
        return found

    def absorb(self, taken: Any) -> None:
        """Combine with what was taken from another key."""
        if taken is not None:
            self.add(taken)


class LiveAggregatingState(AggregatingState[Any, Any]):
    """Folds at once, so the state is one accumulator."""

    def __init__(self, accumulator: ValueState[Any], function: AggregateFunction) -> None:
        self.below = accumulator
        self._function = function

    def get(self) -> Any:
        accumulator = self.below.value()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self.below.value()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self.below.update(self._function.add(value, accumulator))

    def clear(self) -> None:
        self.below.clear()

    def take(self) -> Any:
        """The current key's accumulator, which is then gone: another key's will have it."""
        found = self.below.value()
        self.below.clear()
        return found

    def absorb(self, taken: Any) -> None:
        """Merge with what was taken from another key."""
        if taken is None:
            return
        own = self.below.value()
        self.below.update(taken if own is None else self._function.merge(own, taken))
