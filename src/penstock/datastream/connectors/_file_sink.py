"""A sink of files: parts in buckets, of which readers see whole ones of committed epochs only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from copy import copy
from typing import TYPE_CHECKING, Any

from penstock.common.local_paths import local_path
from penstock.common.serialization import Encoder, LineEncoder
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors._file_buckets import BucketAssigner, checked_bucket
from penstock.datastream.connectors._file_sink_settings import (
    LATER,
    DefaultRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
    positive,
)
from penstock.datastream.connectors._part_files import (
    OpenPart,
    StagedPart,
    delete_failed,
    publish,
    staging_of,
    sync_directory,
)
from penstock.datastream.connectors.base import (
    Committable,
    Committer,
    InitContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.datastream.functions import SinkFunction
from penstock.errors import FileAccessError, InvalidArgumentError, UnsupportedFeatureError
from penstock.refusals import refusing

if TYPE_CHECKING:
    from typing_extensions import Self

_HELD_BYTES = 1 << 20
_HELD_BYTES_IN_ALL = 1 << 25


class _Builder:
    """Settings of a sink that writes record by record."""

    def __init__(self, base_path: str, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise InvalidArgumentError.of(
                "encoder", "an Encoder, as of Encoder.simple_string_encoder()", encoder
            )
        self._base = local_path(base_path, "sink of files")
        self._encoder = encoder
        self._assigner = BucketAssigner.date_time_bucket_assigner()
        self._policy: RollingPolicy = RollingPolicy.default_rolling_policy()
        self._names = OutputFileConfig.builder().build()

    def with_bucket_check_interval(self, interval: int) -> Self:
        """Accepted and without effect: parts end with their epoch."""
        positive("interval", interval)
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
        if not isinstance(bucket_assigner, BucketAssigner):
            raise InvalidArgumentError.of("bucket_assigner", "a BucketAssigner", bucket_assigner)
        self._assigner = bucket_assigner
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
        if not isinstance(rolling_policy, RollingPolicy):
            raise InvalidArgumentError.of("rolling_policy", "a RollingPolicy", rolling_policy)
        self._policy = rolling_policy
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
        if not isinstance(output_file_config, OutputFileConfig):
            raise InvalidArgumentError.of(
                "output_file_config", "an OutputFileConfig", output_file_config
            )
        self._names = output_file_config
        return self

    def _build(self) -> FileSink:
        return FileSink(self._base, self._encoder, self._assigner, self._policy, self._names)


@refusing({"for_bulk_format": LATER})
class FileSink(Sink):
    """Files below a directory. Made by `for_row_format(path, encoder)…build()`."""

    def __init__(
        self,
        base: str,
        encoder: Encoder,
        assigner: BucketAssigner,
        policy: RollingPolicy,
        names: OutputFileConfig,
    ) -> None:
        self.base = base
        self.encoder = encoder
        self.assigner = assigner
        self.names = names
        by_size = isinstance(policy, DefaultRollingPolicy)
        self.part_size = policy.part_size if by_size else None  # type: ignore[attr-defined]

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Write what the encoder makes of each record."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    def get_transformer(self) -> None:
        """Nothing is done to the stream before."""

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _PartWriter(self, context)

    def for_type(self, type_info: TypeInformation | None) -> FileSink:
        if not isinstance(self.encoder, LineEncoder):
            return self
        sink = copy(self)
        sink.encoder = self.encoder.of_type(type_info)
        return sink

    def create_committer(self) -> Committer:
        _check_writable(self.base)
        return _PartCommitter(self.base)

    @refusing({"enable_compact": LATER})
    class RowFormatBuilder(_Builder):
        def disable_compact(self) -> FileSink.RowFormatBuilder:
            """As it is."""
            return self

        def build(self) -> FileSink:
            return self._build()

    BaseBuilder = RowFormatBuilder

    @refusing({"__init__": LATER})
    class BulkFormatBuilder:
        """Made by nothing yet."""


@refusing({"for_bulk_format": LATER})
class StreamingFileSink(SinkFunction):
    """The same by its earlier name, for `add_sink`."""

    def __init__(self, sink: FileSink) -> None:
        self.sink = sink
        """What `add_sink` takes in its place."""

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        raise UnsupportedFeatureError.of("StreamingFileSink.invoke", "pass it to add_sink(...)")

    @staticmethod
    def for_row_format(
        base_path: str, encoder: Encoder
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, encoder)

    class DefaultRowFormatBuilder(_Builder):
        def with_rolling_policy(self, policy: RollingPolicy) -> Self:
            return super().with_rolling_policy(policy)

        def build(self) -> StreamingFileSink:
            return StreamingFileSink(self._build())

    BaseBuilder = DefaultRowFormatBuilder

    @refusing({"__init__": LATER})
    class DefaultBulkFormatBuilder:
        """Made by nothing yet."""


class _PartWriter(SinkWriter):
    """One attempt at one epoch: a part file for each bucket, and more if they grow large."""

    def __init__(self, sink: FileSink, context: InitContext) -> None:
        self._sink = sink
        self._context = context
        self._encode = sink.encoder.encode
        self._bucket_of = sink.assigner.get_bucket_id
        self._part_size = sink.part_size
        self._most_held = min(_HELD_BYTES, sink.part_size or _HELD_BYTES)
        self._staging = staging_of(context)
        self._directory = os.path.join(sink.base, self._staging)
        self._open: dict[str, OpenPart] = {}
        self._whole: list[tuple[OpenPart, StagedPart]] = []
        self._held = 0
        self._count = 0
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as error:
            raise FileAccessError.unwritable(self._directory, error) from error

    def write(self, value: Any, context: WriterContext) -> None:
        bucket = self._bucket_of(value, context)
        part = self._open.get(bucket)
        if part is None:
            part = self._begin(bucket)
        data = self._encode(value)
        size = len(data)
        part.held.append(data)
        part.held_bytes += size
        self._held += size
        if part.held_bytes >= self._most_held:
            self._write_out(bucket, part)
        elif self._held >= _HELD_BYTES_IN_ALL:
            for each, other in list(self._open.items()):
                self._write_out(each, other)

    def prepare_commit(self) -> list[Any]:
        for bucket in list(self._open):
            self._end(bucket)
        sync_directory(self._directory)
        return [staged for _, staged in self._whole]

    def abort(self) -> None:
        for part in (*self._open.values(), *(part for part, _ in self._whole)):
            part.delete()

    def _begin(self, bucket: str) -> OpenPart:
        checked_bucket(bucket)
        name = f"{self._context.epoch}-{self._context.attempt}-{self._count}"
        part = OpenPart(os.path.join(self._directory, name), self._count)
        self._open[bucket] = part
        self._count += 1
        return part

    def _write_out(self, bucket: str, part: OpenPart) -> None:
        self._held -= part.held_bytes
        part.flush()
        if self._part_size is not None and part.written >= self._part_size:
            self._end(bucket)

    def _end(self, bucket: str) -> None:
        part = self._open[bucket]
        part.flush(durably=True)
        del self._open[bucket]
        name = os.path.basename(part.path)
        path = os.path.join(bucket, self._final_name(part))
        self._whole.append((part, StagedPart(self._staging, name, path)))

    def _final_name(self, part: OpenPart) -> str:
        """Sorts by epoch; the attempt makes it unlike that of any other job's part."""
        names, context = self._sink.names, self._context
        counter = f"{context.epoch:06d}-{part.number}"
        return (
            f"{names.get_part_prefix()}-{context.subtask_index}-{counter}-{context.attempt}"
            f"{names.get_part_suffix()}"
        )


class _PartCommitter(Committer):
    def __init__(self, base: str) -> None:
        self._base = base
        self._stagings: set[str] = set()

    def commit(self, committables: list[Committable]) -> None:
        parts: list[StagedPart] = [item.data for item in committables]
        publish(self._base, parts)
        epoch = max(item.epoch for item in committables)
        for staging in {part.staging for part in parts}:
            self._stagings.add(staging)
            delete_failed(os.path.join(self._base, staging), epoch)

    def close(self) -> None:
        for staging in self._stagings:
            with contextlib.suppress(OSError):  # somebody writes, or something waits there
                os.rmdir(os.path.join(self._base, staging))


def _check_writable(base: str) -> None:
    try:
        os.makedirs(base, exist_ok=True)
        with tempfile.TemporaryFile(dir=base):
            pass
    except OSError as error:
        raise FileAccessError.unwritable(base, error) from error
