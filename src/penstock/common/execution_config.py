"""ExecutionConfig: PyFlink's setters over the options of a Configuration.

A setting lives in the configuration and nowhere else; `penstock.options` says which have no
effect yet. What only concerns the JVM (Kryo, Avro, closures) is remembered and has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock import options
from penstock.common._old_settings import OldExecutionSettings
from penstock.common.configuration import Configuration
from penstock.common.time import Span, to_millis
from penstock.errors import InvalidArgumentError

__all__ = ["ExecutionConfig"]


class ExecutionConfig(OldExecutionSettings):
    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._config = Configuration() if configuration is None else configuration
        self._closure_cleaner = True
        self._force_kryo = False
        self._force_avro = False
        self._global_job_parameters: dict[str, str] = {}

    def get_parallelism(self) -> int:
        """PARALLELISM_DEFAULT if nothing is set: then the engine decides."""
        parallelism = self._config.get(options.PARALLELISM)
        return self.PARALLELISM_DEFAULT if parallelism is None else parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        if parallelism == self.PARALLELISM_DEFAULT:
            self._config.set(options.PARALLELISM, None)
        elif parallelism != self.PARALLELISM_UNKNOWN:
            self._config.set(options.PARALLELISM, _positive("parallelism", parallelism))
        return self

    def get_max_parallelism(self) -> int:
        """-1 if nothing is set: then it is derived from each operator's parallelism."""
        max_parallelism = self._config.get(options.MAX_PARALLELISM)
        return -1 if max_parallelism is None else max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        _positive("max_parallelism", max_parallelism)
        if max_parallelism > 1 << 15:
            raise InvalidArgumentError.of("max_parallelism", "at most 32768", max_parallelism)
        self._config.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_auto_watermark_interval(self) -> int:
        return self._config.get(options.AUTO_WATERMARK_INTERVAL)

    def set_auto_watermark_interval(self, interval: Span) -> ExecutionConfig:
        """Milliseconds or a Duration; 0 for no periodic watermarks."""
        self._config.set(options.AUTO_WATERMARK_INTERVAL, to_millis(interval, "the interval"))
        return self

    def get_latency_tracking_interval(self) -> int:
        return self._config.get(options.LATENCY_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        self._config.set(options.LATENCY_INTERVAL, interval)
        return self

    def get_task_cancellation_interval(self) -> int:
        return self._config.get(options.TASK_CANCELLATION_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        self._config.set(options.TASK_CANCELLATION_INTERVAL, interval)
        return self

    def get_task_cancellation_timeout(self) -> int:
        return self._config.get(options.TASK_CANCELLATION_TIMEOUT)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        self._config.set(options.TASK_CANCELLATION_TIMEOUT, timeout)
        return self

    def enable_generic_types(self) -> ExecutionConfig:
        self._config.set(options.GENERIC_TYPES, True)
        return self

    def disable_generic_types(self) -> ExecutionConfig:
        self._config.set(options.GENERIC_TYPES, False)
        return self

    def has_generic_types_disabled(self) -> bool:
        return not self._config.get(options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        self._config.set(options.AUTO_GENERATE_UIDS, True)
        return self

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse to run operators that have no uid."""
        self._config.set(options.AUTO_GENERATE_UIDS, False)
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._config.get(options.AUTO_GENERATE_UIDS)

    def enable_object_reuse(self) -> ExecutionConfig:
        self._config.set(options.OBJECT_REUSE, True)
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        self._config.set(options.OBJECT_REUSE, False)
        return self

    def is_object_reuse_enabled(self) -> bool:
        return self._config.get(options.OBJECT_REUSE)

    def is_use_snapshot_compression(self) -> bool:
        return self._config.get(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        self._config.set(options.SNAPSHOT_COMPRESSION, use_snapshot_compression)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        return dict(self._global_job_parameters)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, object]
    ) -> ExecutionConfig:
        self._global_job_parameters = {
            str(key): str(value) for key, value in global_job_parameters_dict.items()
        }
        return self

    def enable_closure_cleaner(self) -> ExecutionConfig:
        self._closure_cleaner = True
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        self._closure_cleaner = False
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        return self._closure_cleaner

    def enable_force_kryo(self) -> ExecutionConfig:
        self._force_kryo = True
        return self

    def disable_force_kryo(self) -> ExecutionConfig:
        self._force_kryo = False
        return self

    def is_force_kryo_enabled(self) -> bool:
        return self._force_kryo

    def enable_force_avro(self) -> ExecutionConfig:
        self._force_avro = True
        return self

    def disable_force_avro(self) -> ExecutionConfig:
        self._force_avro = False
        return self

    def is_force_avro_enabled(self) -> bool:
        return self._force_avro

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        return []

    def get_registered_pojo_types(self) -> list[str]:
        return []


def _positive(what: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError.of(what, "a positive number", value)
    return value
