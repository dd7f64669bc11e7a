"""How RocksDB is set up: several gigabytes on disk, some tens of megabytes in memory."""

from __future__ import annotations

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options

LEVEL_ZERO_FILES = 6

_BLOCK_CACHE = 32 << 20
_WRITE_BUFFER = 32 << 20
_FILE_SIZE = 32 << 20


def store_options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(_tables())
    # An open file costs memory too; the rest is reopened when needed.
    options.set_max_open_files(256)
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_max_write_buffer_number(2)
    options.set_target_file_size_base(_FILE_SIZE)
    options.set_max_bytes_for_level_base(8 * _FILE_SIZE)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_FILES)
    # One compaction is what a single apply may have to wait for.
    options.set_max_compaction_bytes(8 * _FILE_SIZE)
    options.set_max_background_jobs(2)
    options.set_compression_type(DBCompressionType.lz4())
    # The store is opened and closed all the time: no statistics, few and small logs.
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    return options


def _tables() -> BlockBasedOptions:
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(_BLOCK_CACHE))
    tables.set_block_size(8 << 10)
    tables.set_bloom_filter(10, False)
    # Otherwise they live outside the cache and grow with the state.
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    return tables
