"""Output tags, backends, storages and resource groups: small values with checks."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import penstock.datastream as api
from penstock.common.typeinfo import Types
from penstock.datastream.checkpoint_storage import (
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from penstock.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError


def test_output_tags_are_equal_by_id() -> None:
    late = OutputTag("late", Types.LONG())
    assert late == OutputTag("late") != OutputTag("early")
    assert len({late, OutputTag("late"), OutputTag("early")}) == 2
    assert pickle.loads(pickle.dumps(late)).type_info == Types.LONG()
    assert OutputTag("t").type_info == Types.PICKLED_BYTE_ARRAY()
    fields = [Types.LONG(), Types.STRING()]
    assert OutputTag("t", fields).type_info == Types.ROW(fields)


@pytest.mark.parametrize("tag_id", ["", None, 1])
def test_an_output_tag_needs_an_id(tag_id: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="non-empty string"):
        OutputTag(tag_id)


def test_state_backends() -> None:
    rocks = EmbeddedRocksDBStateBackend()
    rocks.set_db_storage_paths("/a", "/b")
    rocks.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    rocks.set_number_of_transfer_threads(8)
    assert rocks.get_db_storage_paths() == ["/a", "/b"]
    assert rocks.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert rocks.get_number_of_transfer_threads() == 8
    assert rocks.is_incremental_checkpoints_enabled()
    assert pickle.loads(pickle.dumps(rocks)) == rocks != EmbeddedRocksDBStateBackend()
    names = [HashMapStateBackend.config_name, EmbeddedRocksDBStateBackend.config_name]
    assert names == ["hashmap", "rocksdb"]


def test_what_needs_java_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="HashMapStateBackend"):
        CustomStateBackend(object())
    with pytest.raises(UnsupportedFeatureError, match="FileSystemCheckpointStorage"):
        CustomCheckpointStorage(object())
    with pytest.raises(UnsupportedFeatureError, match="set_predefined_options"):
        EmbeddedRocksDBStateBackend().set_options("org.Factory")
    with pytest.raises(UnsupportedFeatureError, match="changes only"):
        EmbeddedRocksDBStateBackend(False)


def test_checkpoint_storages() -> None:
    files = FileSystemCheckpointStorage("file:///x", write_buffer_size=100)
    assert files.get_checkpoint_path() == "file:///x"
    assert files.get_min_file_size_threshold() == 20480
    assert files.get_write_buffer_size() == 100
    assert files == FileSystemCheckpointStorage("file:///x", write_buffer_size=100)
    assert JobManagerCheckpointStorage().get_max_state_size() == 5 * 1024 * 1024
    with pytest.raises(InvalidArgumentError, match="checkpoint path"):
        FileSystemCheckpointStorage("")


def test_slot_sharing_groups() -> None:
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1.5)
        .set_task_heap_memory_mb(100)
        .set_external_resource("gpu", 1.0)
        .build()
    )
    assert group.get_name() == "g"
    assert group.get_cpu_cores() == 1.5
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(100)
    assert group.get_external_resources() == {"gpu": 1.0}
    assert pickle.loads(pickle.dumps(group)) == group
    with pytest.raises(InvalidArgumentError, match="no cpu cores"):
        SlotSharingGroup.builder("g").set_managed_memory_mb(1).build()
    with pytest.raises(InvalidArgumentError, match="no heap memory"):
        SlotSharingGroup.builder("g").set_cpu_cores(1).build()


def test_memory_sizes() -> None:
    size = MemorySize.of_mebi_bytes(2048)
    assert (size.get_bytes(), size.get_mebi_bytes(), size.get_gibi_bytes()) == (2**31, 2048, 2)


def test_the_package_knows_every_name_once() -> None:
    assert sorted(api._HOME) == sorted(api.__all__)


def test_names_of_the_package_load_when_used() -> None:
    assert api.OutputTag is OutputTag
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        api.Nonsense
