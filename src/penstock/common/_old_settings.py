"""Settings of `ExecutionConfig` that only programs for Flink 1.x make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.execution_mode import ExecutionMode
from penstock.common.input_dependency_constraint import InputDependencyConstraint
from penstock.common.restart_strategy import (
    RestartStrategyConfiguration,
    restart_strategy_from,
    set_restart_strategy,
)
from penstock.common.time import Span
from penstock.deprecation import old

if TYPE_CHECKING:
    from typing_extensions import Self

_old = old("ExecutionConfig")


class OldExecutionSettings:
    """Base of `ExecutionConfig`."""

    _config: Configuration
    _execution_mode = ExecutionMode.PIPELINED
    _input_constraint = InputDependencyConstraint.ANY

    @_old
    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> Self:
        set_restart_strategy(self._config, restart_strategy_configuration)
        return self

    @_old
    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        return restart_strategy_from(self._config)

    @_old
    def set_number_of_execution_retries(self, number_of_execution_retries: int) -> Self:
        """Restarts after a failure; 0 for none."""
        self._config.set(options.RESTART_STRATEGY, "fixed-delay")
        self._config.set(options.FIXED_DELAY_ATTEMPTS, number_of_execution_retries)
        return self

    @_old
    def get_number_of_execution_retries(self) -> int:
        return self._config.get(options.FIXED_DELAY_ATTEMPTS)

    @_old
    def set_execution_retry_delay(self, execution_retry_delay: Span) -> Self:
        self._config.set(options.FIXED_DELAY_DELAY, execution_retry_delay)
        return self

    @_old
    def get_execution_retry_delay(self) -> int:
        return self._config.get(options.FIXED_DELAY_DELAY)

    @_old
    def set_execution_mode(self, execution_mode: ExecutionMode) -> Self:
        """Accepted and without effect: it chose how Flink's batch jobs exchange data."""
        self._execution_mode = execution_mode
        return self

    @_old
    def get_execution_mode(self) -> ExecutionMode:
        return self._execution_mode

    @_old
    def set_default_input_dependency_constraint(
        self, input_dependency_constraint: InputDependencyConstraint
    ) -> Self:
        """Accepted and without effect: Spark starts tasks, by whole stages."""
        self._input_constraint = input_dependency_constraint
        return self

    @_old
    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        return self._input_constraint

    @_old
    def disable_auto_type_registration(self) -> Self:
        """Accepted and without effect: Kryo is a serializer of Java's."""
        return self

    @_old
    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:
        """Accepted and without effect: Kryo is a serializer of Java's."""
        return self

    @_old
    def register_type_with_kryo_serializer(
        self, type_class_name: str, serializer_class_name: str
    ) -> Self:
        """Accepted and without effect: Kryo is a serializer of Java's."""
        return self

    @_old
    def register_pojo_type(self, type_class_name: str) -> Self:
        """Accepted and without effect: there are no Java classes among the records."""
        return self

    @_old
    def register_kryo_type(self, type_class_name: str) -> Self:
        """Accepted and without effect: Kryo is a serializer of Java's."""
        return self
