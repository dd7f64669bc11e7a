"""Window join and co-group: two streams whose records meet in windows of a common key.

    orders.join(payments).where(id).equal_to(order_id).window(assigner).apply(function)

Records are marked by their stream, united, keyed and cut into windows like any other stream; the
window function parts them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.time import Duration, Time
from penstock.datastream._joined_windows import (
    FIRST,
    SECOND,
    CoGroup,
    FlatJoinPairs,
    JoinPairs,
    KeyOfEither,
)
from penstock.datastream._stream_arguments import (
    declared_type,
    instance_of,
    one_of_kinds_or_callable,
    selector_of,
)
from penstock.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.datastream.window import Evictor, Trigger, WindowAssigner
from penstock.errors import InvalidArgumentError
from penstock.refusals import refusing
from penstock.runtime.operators.marked import Mark

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream._data_stream import DataStream, Selector, TypeLike
    from penstock.datastream.windowed_stream import WindowedStream

__all__ = ["FIRST", "SECOND", "CoGroupedStreams", "JoinedStreams"]


@dataclass(frozen=True)
class _Side:
    """One of the two streams and the key of its records."""

    stream: DataStream
    select: Callable[[Any], Any]
    key_type: Any

    def marked(self, number: int, name: str) -> DataStream:
        """Its records, marked where they are: in the task before, if nothing is between."""
        before = self.stream._env._graph.node(self.stream._edges[0].source)
        parallelism = before.fixed_parallelism or before.parallelism
        return self.stream._then(name, Mark(number), parallelism=parallelism, helper=True)


class _WindowedPair:
    """Two streams in common windows, so far without a function."""

    def __init__(self, windowed: WindowedStream) -> None:
        self._windowed = windowed

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Fire windows by this trigger, instead of the assigner's own."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Take records out of a window when it fires; it sees them as pairs of `FIRST` or `SECOND`
        and a record."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time: int | Time | Duration) -> Self:
        """How long after its end a window still takes records, each of which fires it again."""
        self._windowed.allowed_lateness(time)
        return self


class JoinedWindows(_WindowedPair):
    """A window join, as far as it is described."""

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        output_type: TypeLike = None,
    ) -> DataStream:
        """Call the function with each pair; a plain callable gives one result, as a JoinFunction.

        Records without a partner give nothing.
        """
        kinds = (JoinFunction, FlatJoinFunction)
        one_of_kinds_or_callable("apply after join", kinds, function)
        joining = FlatJoinPairs if isinstance(function, FlatJoinFunction) else JoinPairs
        return self._windowed._applied("Join", function, joining(function), output_type)


class CoGroupedWindows(_WindowedPair):
    """A co-group, as far as it is described."""

    def apply(
        self,
        function: CoGroupFunction | Callable[[list[Any], list[Any]], Any],
        output_type: TypeLike = None,
    ) -> DataStream:
        """Call the function with the records of both streams, for each key and window."""
        one_of_kinds_or_callable("apply after co_group", (CoGroupFunction,), function)
        return self._windowed._applied("CoGroup", function, CoGroup(function), output_type)


P = TypeVar("P", bound=_WindowedPair)


class _Pair(Generic[P]):
    """Two streams, so far without keys."""

    _windows: type[P]

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self._first = first
        self._second = second

    def where(self, key_selector: Selector, key_type: TypeLike = None) -> Where[P]:
        """The key of the first stream's records."""
        select = selector_of("where", key_selector)
        side = _Side(self._first, select, declared_type(key_type))
        return Where(self._windows, side, self._second)


@refusing(dict.fromkeys(("apply", "window"), "call equal_to(...) first"))
class Where(Generic[P]):
    """Two streams, one of them with keys."""

    def __init__(self, windows: type[P], first: _Side, second: DataStream) -> None:
        self._windows = windows
        self._first = first
        self._second = second

    def equal_to(self, key_selector: Selector, key_type: TypeLike = None) -> EqualTo[P]:
        """The key of the second stream's records."""
        select = selector_of("equal_to", key_selector)
        side = _Side(self._second, select, declared_type(key_type))
        types = {self._first.key_type, side.key_type} - {None}
        if len(types) > 1:
            raise InvalidArgumentError(
                "both keys of a join must be of one type, got "
                f"{self._first.key_type!r} and {side.key_type!r}"
            )
        return EqualTo(self._windows, self._first, side)


@refusing({"apply": "call window(...) first"})
class EqualTo(Generic[P]):
    """Two streams with keys."""

    def __init__(self, windows: type[P], first: _Side, second: _Side) -> None:
        self._windows = windows
        self._first = first
        self._second = second

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> P:
        """Cut the records of each key, of both streams, into common windows."""
        assigner = instance_of("window", (WindowAssigner,), window_assigner)
        first, second = self._first, self._second
        both = first.marked(FIRST, "First Input").union(second.marked(SECOND, "Second Input"))
        key = KeyOfEither(first.select, second.select)
        keyed = both.key_by(key, first.key_type or second.key_type)
        return self._windows(keyed.window(assigner))


class JoinedStreams(_Pair[JoinedWindows]):
    """Made by `DataStream.join`."""

    _windows = JoinedWindows


class CoGroupedStreams(_Pair[CoGroupedWindows]):
    """Made by `DataStream.co_group`."""

    _windows = CoGroupedWindows
