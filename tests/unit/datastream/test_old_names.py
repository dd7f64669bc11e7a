"""What programs for Flink 1.x set: each call warns, and shows in the configuration."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import options, pyflink_names
from penstock.common import Configuration, ExecutionConfig, RestartStrategies, Time
from penstock.common.execution_mode import ExecutionMode
from penstock.common.input_dependency_constraint import InputDependencyConstraint
from penstock.datastream import (
    CheckpointConfig,
    DataStream,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    KeyedStream,
    StreamExecutionEnvironment,
)
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.datastream.state_backend import (
    FsStateBackend,
    MemoryStateBackend,
    RocksDBStateBackend,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

OWNERS = {
    cls.__name__: cls
    for cls in (
        CheckpointConfig,
        DataStream,
        ExecutionConfig,
        KeyedStream,
        StreamExecutionEnvironment,
    )
}


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration.from_dict({"penstock.executor": "local"}))


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.parametrize("name", pyflink_names.OLD_METHODS)
def test_every_old_method_warns(name: str) -> None:
    owner, _, method = name.partition(".")
    function = getattr(OWNERS[owner], method)
    # Without a self nothing happens but the warning, and then an error.
    with (
        pytest.warns(DeprecationWarning, match=f"{name} is of Flink 1.x; use ") as caught,
        pytest.raises((AttributeError, TypeError)),
    ):
        function(*[None] * (len(inspect.signature(function).parameters) + 1))
    assert caught[0].filename == __file__
    assert pyflink_names.OLD_METHODS[name] in str(caught[0].message)


def test_old_classes_are_there() -> None:
    for name in pyflink_names.OLD_CLASSES:
        module, _, cls = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[cls]), cls)


@pytest.mark.parametrize(
    "strategy",
    [
        RestartStrategies.no_restart(),
        RestartStrategies.fall_back_restart(),
        RestartStrategies.fixed_delay_restart(3, Time.seconds(10)),
        RestartStrategies.failure_rate_restart(2, 60_000, Time.seconds(1)),
        RestartStrategies.exponential_delay_restart(2_000, 5_000, 2.0, 9_000, 0.5, 4),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
@pytest.mark.usefixtures("quiet")
def test_restart_strategies(env: StreamExecutionEnvironment, strategy: Any) -> None:
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(99, 99))
    env.set_restart_strategy(strategy)
    assert env.get_restart_strategy() == strategy
    assert env.get_config().get_restart_strategy() == strategy

    with pytest.raises(InvalidArgumentError, match="made with RestartStrategies, got str"):
        env.set_restart_strategy("none")  # type: ignore[arg-type]


@pytest.mark.usefixtures("quiet")
def test_retries_are_a_fixed_delay(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_number_of_execution_retries(4).set_execution_retry_delay(250)
    assert env.get_restart_strategy() == RestartStrategies.fixed_delay_restart(4, 250)
    assert env.get_config().get_number_of_execution_retries() == 4
    assert env.get_config().get_execution_retry_delay() == 250


@pytest.mark.parametrize(
    ("backend", "kind", "checkpoints", "chosen"),
    [
        (HashMapStateBackend(), "hashmap", None, HashMapStateBackend()),
        (MemoryStateBackend(), "hashmap", None, HashMapStateBackend()),
        (MemoryStateBackend("/c", "/s", 1, True), "hashmap", "/c", HashMapStateBackend()),
        (FsStateBackend("file:///c", "/s"), "hashmap", "file:///c", HashMapStateBackend()),
        (EmbeddedRocksDBStateBackend(), "rocksdb", None, EmbeddedRocksDBStateBackend()),
        (RocksDBStateBackend("/c", True), "rocksdb", "/c", EmbeddedRocksDBStateBackend()),
        (
            RocksDBStateBackend(checkpoint_stream_backend=FsStateBackend("/c")),
            "rocksdb",
            "/c",
            EmbeddedRocksDBStateBackend(),
        ),
    ],
)
@pytest.mark.usefixtures("quiet")
def test_state_backends(
    env: StreamExecutionEnvironment, backend: Any, kind: str, checkpoints: Any, chosen: Any
) -> None:
    env.set_state_backend(backend)
    assert env._configuration.get(options.STATE_BACKEND) == kind
    assert env._configuration.get(options.CHECKPOINT_DIR) == checkpoints
    assert env.get_state_backend() == chosen


@pytest.mark.usefixtures("quiet")
def test_state_backends_that_cannot_be(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidArgumentError, match="a StateBackend, got str 'rocksdb'"):
        env.set_state_backend("rocksdb")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the checkpoint directory"):
        FsStateBackend("")
    with pytest.raises(InvalidArgumentError, match="the checkpoint directory"):
        RocksDBStateBackend()
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("/a")
    env.set_state_backend(backend)
    assert env._configuration.get(options.STATE_LOCAL_DIR) == "/a"
    backend.set_db_storage_paths("/a", "/b")
    with pytest.raises(UnsupportedFeatureError, match="more than one RocksDB storage path"):
        env.set_state_backend(backend)


@pytest.mark.usefixtures("quiet")
def test_checkpoint_settings(env: StreamExecutionEnvironment) -> None:
    settings = env.get_checkpoint_config()
    keep = CheckpointConfig.ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION

    assert settings.enable_externalized_checkpoints(keep) is settings
    assert settings.get_externalized_checkpoint_retention() is keep
    drop = ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
    assert settings.set_externalized_checkpoint_cleanup(drop) is settings
    assert settings.get_externalized_checkpoint_cleanup() is drop

    assert settings.get_checkpoint_storage() == JobManagerCheckpointStorage()
    settings.set_checkpoint_storage(FileSystemCheckpointStorage("/a"))
    assert env._configuration.get(options.CHECKPOINT_DIR) == "/a"
    settings.set_checkpoint_storage_dir("/b")
    assert settings.get_checkpoint_storage() == FileSystemCheckpointStorage("/b")
    settings.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert env._configuration.get(options.CHECKPOINT_DIR) is None
    with pytest.raises(InvalidArgumentError, match="a FileSystemCheckpointStorage or"):
        settings.set_checkpoint_storage("/c")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the checkpoint path"):
        settings.set_checkpoint_storage_dir("")
    assert settings.set_prefer_checkpoint_for_recovery(False) is settings
    assert settings.is_prefer_checkpoint_for_recovery() is True


@pytest.mark.usefixtures("quiet")
def test_what_only_concerned_the_jvm(env: StreamExecutionEnvironment) -> None:
    before = env._configuration.to_dict()
    config = env.get_config()
    assert config.set_execution_mode(ExecutionMode.BATCH).get_execution_mode().name == "BATCH"
    every = InputDependencyConstraint.ALL
    config.set_default_input_dependency_constraint(every)
    assert config.get_default_input_dependency_constraint() is every
    config.disable_auto_type_registration()
    config.add_default_kryo_serializer("a", "b").register_pojo_type("a").register_kryo_type("a")
    config.register_type_with_kryo_serializer("a", "b")
    env.add_default_kryo_serializer("a", "b")
    env.register_type_with_kryo_serializer("a", "b")
    env.register_type("a")
    assert env._configuration.to_dict() == before


def test_an_old_keyword(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements("a")
    with pytest.warns(DeprecationWarning, match="key_type_info=.* use key_type=") as caught:
        keyed = stream.key_by(lambda text: text, key_type_info=str)  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    assert keyed._key_type == stream.key_by(lambda text: text, key_type=str)._key_type
    assert keyed._key_type is not None
