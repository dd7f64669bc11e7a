"""Configuration, options and their documentation."""

import datetime as dt
from enum import Enum

import pytest

from penstock import options
from penstock.common import ConfigOptions, Configuration, Duration, ExecutionConfig
from penstock.errors import InvalidArgumentError


def test_typed_accessors():
    config = Configuration()
    config.set_string("s", "x").set_integer("i", 5).set_boolean("b", True).set_float("f", 1.5)
    config.set_bytearray("y", bytearray(b"\x01"))
    assert config.get_string("s", "") == "x"
    assert config.get_integer("i", 0) == 5
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0.0) == 1.5
    assert config.get_bytearray("y", bytearray()) == bytearray(b"\x01")
    assert config.get_integer("none", 7) == 7
    assert config.get_string("i", "") == "5"
    assert config.key_set() == {"s", "i", "b", "f", "y"}


def test_values_from_text():
    config = Configuration.from_dict({"i": "5", "b": "TRUE", "f": "1e3"})
    assert config.get_integer("i", 0) == 5
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0.0) == 1000.0
    with pytest.raises(InvalidArgumentError, match="b must be a whole number, got str 'TRUE'"):
        config.get_integer("b", 0)


def test_wrong_types_are_refused_when_set():
    with pytest.raises(InvalidArgumentError, match="i must be a whole number, got bool True"):
        Configuration().set_integer("i", True)
    with pytest.raises(InvalidArgumentError, match="s must be text, got int 1"):
        Configuration().set_string("s", 1)


def test_copy_merge_remove():
    first = Configuration.from_dict({"a": "1"})
    second = Configuration(first).set_string("b", "2")
    assert not first.contains_key("b")
    first.add_all(second, "p.")
    assert first.to_dict() == {"a": "1", "p.a": "1", "p.b": "2"}
    assert first.remove_config("a") is True
    assert first.remove_config("a") is False
    target = {}
    second.add_all_to_dict(target)
    assert target == {"a": "1", "b": "2"}
    assert Configuration.from_dict({"n": 1}) == Configuration.from_dict({"n": "1"})


def test_lists():
    assert Configuration.parse_list_value("a;b ; c") == ["a", "b", "c"]
    assert Configuration.parse_list_value("[a, 'b', c]") == ["a", "b", "c"]
    assert Configuration.parse_list_value("") == []


def test_options_get_and_set():
    config = Configuration()
    assert config.get(options.CHECKPOINT_TIMEOUT) == 600_000
    assert config.get(options.CHECKPOINT_DIR) is None
    config.set(options.CHECKPOINT_TIMEOUT, "1 min")
    assert config.get(options.CHECKPOINT_TIMEOUT) == 60_000
    config.set(options.CHECKPOINT_TIMEOUT, None)
    assert not config.contains(options.CHECKPOINT_TIMEOUT)


@pytest.mark.parametrize(
    "value", ["10 s", "10000", 10_000, dt.timedelta(seconds=10), Duration.of_seconds(10)]
)
def test_durations(value):
    config = Configuration.from_dict({"execution.checkpointing.interval": value})
    assert config.get(options.CHECKPOINT_INTERVAL) == 10_000


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("64", 64),
        (64, 64),
        ("3k", 3072),
        ("512m", 512 << 20),
        ("2 GB", 2 << 30),
        ("1 mib", 1 << 20),
    ],
)
def test_sizes(value, size):
    config = Configuration.from_dict({"penstock.state.cache-memory": value})
    assert config.get(options.STATE_CACHE_MEMORY) == size


@pytest.mark.parametrize("value", ["much", "1.5g", "-1", -1, True, "m", "4ib"])
def test_what_is_no_size_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="a size such as '512m', or bytes"):
        Configuration().set(options.STATE_CACHE_MEMORY, value)


class Mode(Enum):
    BATCH = 1


def test_choices():
    config = Configuration.from_dict({"execution.runtime-mode": "batch"})
    assert config.get(options.RUNTIME_MODE) == "BATCH"
    assert Configuration().set(options.RUNTIME_MODE, Mode.BATCH).get(options.RUNTIME_MODE) == (
        "BATCH"
    )
    with pytest.raises(InvalidArgumentError, match="one of hashmap, rocksdb, got str 'redis'"):
        Configuration().set(options.STATE_BACKEND, "redis")


def test_older_keys_are_read():
    config = Configuration.from_dict({"state.checkpoints.dir": "/c", "state.backend": "rocksdb"})
    assert config.get(options.CHECKPOINT_DIR) == "/c"
    assert config.get(options.STATE_BACKEND) == "rocksdb"
    config.set(options.CHECKPOINT_DIR, "/d")
    assert config.get(options.CHECKPOINT_DIR) == "/d"


def test_user_options():
    option = ConfigOptions.key("my.size").int_type().default_value(3)
    assert Configuration().get(option) == 3
    assert Configuration.from_dict({"my.size": "4"}).get(option) == 4
    assert Configuration().get(ConfigOptions.key("k").string_type().no_default_value()) is None
    with pytest.raises(InvalidArgumentError):
        ConfigOptions.key("k").int_type().default_value("x")


def test_unknown_keys():
    assert options.nearest_key("penstock.epoch.intervall") == "penstock.epoch.interval"
    assert options.nearest_key("zzz") is None
    options.reject_unknown_keys(["penstock.job-id", "my.own", "pipeline.anything"])
    with pytest.raises(InvalidArgumentError, match=r"did you mean 'penstock\.executor'"):
        options.reject_unknown_keys(["penstock.exekutor"])


def test_every_default_is_of_its_type():
    for option in options.all_options():
        if option.default is not None:
            assert option.parse(option.default) == option.default
            assert option.parse(str(option.default)) == option.default
        assert option.help.endswith(".")
        assert options.find_option(option.key) is option


def test_defaults_asked_for():
    assert options.MAX_RECORDS_PER_EPOCH.default is None
    assert options.EPOCH_ADAPTIVE.default is True
    assert options.STATE_CACHE_ENTRIES.default == 200_000
    assert options.EXECUTOR.choices == ("spark", "local")
    assert options.find_option("state.checkpoints.dir") is options.CHECKPOINT_DIR


def test_markdown():
    lines = options.options_markdown().splitlines()
    assert lines[0] == "| Key | Type | Default | What it does |"
    assert len(lines) == 2 + len(options.all_options())
    assert (
        "| `execution.checkpointing.timeout` | duration | `10 min` "
        "| When a checkpoint is given up. |" in lines
    )


def test_execution_config_writes_through():
    config = Configuration()
    execution = ExecutionConfig(config)
    assert execution.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert execution.get_max_parallelism() == -1
    assert execution.set_parallelism(4).set_max_parallelism(64) is execution
    execution.set_auto_watermark_interval(50).enable_object_reuse()
    assert config.to_dict() == {
        "parallelism.default": "4",
        "pipeline.max-parallelism": "64",
        "pipeline.auto-watermark-interval": "50",
        "pipeline.object-reuse": "true",
    }
    assert execution.get_parallelism() == 4
    assert execution.get_max_parallelism() == 64
    config.set(options.PARALLELISM, 2)
    assert execution.get_parallelism() == 2
    assert execution.set_parallelism(-1).get_parallelism() == -1


@pytest.mark.parametrize("value", [0, -5, True, "4"])
def test_execution_config_refuses(value):
    with pytest.raises(InvalidArgumentError):
        ExecutionConfig().set_parallelism(value)
    with pytest.raises(InvalidArgumentError):
        ExecutionConfig().set_max_parallelism(value)


def test_execution_config_flags():
    execution = ExecutionConfig()
    assert execution.disable_generic_types().has_generic_types_disabled()
    assert not execution.enable_generic_types().has_generic_types_disabled()
    assert not execution.disable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert not execution.disable_closure_cleaner().is_closure_cleaner_enabled()
    assert execution.enable_force_kryo().is_force_kryo_enabled()
    assert execution.set_use_snapshot_compression(True).is_use_snapshot_compression()
    assert execution.set_global_job_parameters({"a": 1}).get_global_job_parameters() == {"a": "1"}
