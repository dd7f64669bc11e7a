"""How long state lives after it was last touched. Reached as `penstock.datastream.state`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TypeAlias

from penstock.common.time import Duration, Time, to_millis
from penstock.errors import InvalidArgumentError

TimeLike = Time | Duration | timedelta | int


class CleanupStrategies:
    """When expired entries are removed, beyond being hidden from reads."""

    class Strategies(Enum):
        """The kinds of cleanup."""

        FULL_STATE_SCAN_SNAPSHOT = 0
        INCREMENTAL_CLEANUP = 1
        ROCKSDB_COMPACTION_FILTER = 2

    class CleanupStrategy:
        """Base of the settings of one kind."""

    @dataclass(frozen=True)
    class EmptyCleanupStrategy(CleanupStrategy):
        """Switched on, with nothing to set."""

    class IncrementalCleanupStrategy(CleanupStrategy):
        """Look at some entries on each access."""

        def __init__(
            self, cleanup_size: int = 5, run_cleanup_for_every_record: bool = False
        ) -> None:
            self._cleanup_size = cleanup_size
            self._for_every_record = run_cleanup_for_every_record

        def get_cleanup_size(self) -> int:
            return self._cleanup_size

        def run_cleanup_for_every_record(self) -> bool:
            return self._for_every_record

    @dataclass(frozen=True)
    class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
        """Drop entries when RocksDB compacts its files."""

        query_time_after_num_entries: int = 1000
        periodic_compaction_time: int = 30 * 24 * 3600 * 1000

        def get_query_time_after_num_entries(self) -> int:
            return self.query_time_after_num_entries

        def get_periodic_compaction_time(self) -> Duration:
            return Duration.of_millis(self.periodic_compaction_time)

    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def __init__(
        self,
        strategies: dict[CleanupStrategies.Strategies, CleanupStrategies.CleanupStrategy],
        is_cleanup_in_background: bool,
    ) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """Whether the backend removes expired entries by itself."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Whether images of the whole state leave expired entries out."""
        return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """The settings of incremental cleanup, None if it is off."""
        found = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
        if found is None and self._is_cleanup_in_background:
            return self.IncrementalCleanupStrategy()
        return found if isinstance(found, self.IncrementalCleanupStrategy) else None

    def get_rocksdb_compact_filter_cleanup_strategy(
        self,
    ) -> RocksdbCompactFilterCleanupStrategy | None:
        """The settings of cleanup while compacting, None if it is off."""
        found = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
        if found is None and self._is_cleanup_in_background:
            return self.RocksdbCompactFilterCleanupStrategy()
        return found if isinstance(found, self.RocksdbCompactFilterCleanupStrategy) else None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CleanupStrategies)
            and self._strategies == other._strategies
            and self._is_cleanup_in_background == other._is_cleanup_in_background
        )

    def __hash__(self) -> int:
        return hash((frozenset(self._strategies), self._is_cleanup_in_background))


class StateTtlConfig:
    """Time to live of each entry of a state; made by `StateTtlConfig.new_builder(ttl)`."""

    class UpdateType(Enum):
        """What starts an entry's time anew."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether a read may still see an expired entry."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """The clock that counts."""

        ProcessingTime = 0

    CleanupStrategies: TypeAlias = CleanupStrategies

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic,
        ttl: TimeLike,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl_millis = to_millis(ttl, "the time to live")
        self._cleanup_strategies = cleanup_strategies
        if self._ttl_millis <= 0:
            raise InvalidArgumentError.of("the time to live", "greater than 0", ttl)

    @staticmethod
    def new_builder(ttl: TimeLike) -> StateTtlConfig.Builder:
        """Start from Flink's defaults: renewed by writes, expired entries never returned."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        return self._state_visibility

    def get_ttl(self) -> Time:
        return Time.milliseconds(self._ttl_millis)

    @property
    def ttl_millis(self) -> int:
        """The time to live as a number."""
        return self._ttl_millis

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        return self._cleanup_strategies

    def _fields(self) -> tuple[object, ...]:
        return (
            self._update_type,
            self._state_visibility,
            self._ttl_time_characteristic,
            self._ttl_millis,
            self._cleanup_strategies,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateTtlConfig) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"StateTtlConfig({self._ttl_millis} ms, {self._update_type.name})"

    class Builder:
        """Collects the settings of a `StateTtlConfig`."""

        def __init__(self, ttl: TimeLike) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._in_background = True
            self._strategies: dict[
                CleanupStrategies.Strategies, CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(
                StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
            )

        def never_return_expired(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            self._characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            return self.set_ttl_time_characteristic(
                StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            )

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            kind = CleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT
            self._strategies[kind] = CleanupStrategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            kind = CleanupStrategies.Strategies.INCREMENTAL_CLEANUP
            self._strategies[kind] = CleanupStrategies.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: TimeLike | None = None,
        ) -> StateTtlConfig.Builder:
            kind = CleanupStrategies.Strategies.ROCKSDB_COMPACTION_FILTER
            made = CleanupStrategies.RocksdbCompactFilterCleanupStrategy
            self._strategies[kind] = (
                made(query_time_after_num_entries)
                if periodic_compaction_time is None
                else made(
                    query_time_after_num_entries,
                    to_millis(periodic_compaction_time, "the compaction time"),
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            self._in_background = False
            return self

        def set_ttl(self, ttl: TimeLike) -> StateTtlConfig.Builder:
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Check the settings and make the configuration."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._characteristic,
                self._ttl,
                CleanupStrategies(self._strategies, self._in_background),
            )
