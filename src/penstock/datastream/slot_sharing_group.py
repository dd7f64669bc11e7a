"""Resources asked for a group of operators.

Spark schedules whole stages, so a group is kept with the operators and shown by explain; it does
not place tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.errors import InvalidArgumentError
from penstock.refusals import NO_JAVA, refusing

__all__ = ["MemorySize", "SlotSharingGroup"]


@refusing({"get_java_memory_size": NO_JAVA})
class MemorySize:
    """An amount of memory in bytes."""

    __slots__ = ("_bytes",)

    def __init__(self, bytes_size: int | None = None) -> None:
        if bytes_size is None or bytes_size < 0:
            raise InvalidArgumentError.of("a memory size", "at least 0 bytes", bytes_size)
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(bytes_size=mebi_bytes << 20)

    def get_bytes(self) -> int:
        return self._bytes

    def get_kibi_bytes(self) -> int:
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: MemorySize) -> bool:
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return f"MemorySize({self._bytes} bytes)"


@refusing({"get_java_slot_sharing_group": NO_JAVA})
@dataclass(frozen=True)
class SlotSharingGroup:
    """A named group; made by `SlotSharingGroup.builder(name)`."""

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Start a group with no resources named."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        return self.managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        return self.task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        return self.cpu_cores

    def get_external_resources(self) -> dict[str, float]:
        return dict(self.external_resources)

    class Builder:
        """Collects what a group asks for."""

        def __init__(self, name: str) -> None:
            if not isinstance(name, str) or not name:
                raise InvalidArgumentError.of("a slot sharing group", "a non-empty string", name)
            self._name = name
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            if cpu_cores <= 0:
                raise InvalidArgumentError.of("cpu_cores", "greater than 0", cpu_cores)
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            self._heap = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(
            self, task_off_heap_memory: MemorySize
        ) -> SlotSharingGroup.Builder:
            self._off_heap = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(
            self, task_off_heap_memory_mb: int
        ) -> SlotSharingGroup.Builder:
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            self._managed = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            self._external[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """Make the group. As in Flink, memory without cores (or the other way) is refused."""
            if self._cpu_cores is None and (self._heap or self._off_heap or self._managed):
                raise InvalidArgumentError(
                    f"slot sharing group {self._name!r} names memory but no cpu cores; "
                    "call set_cpu_cores and set_task_heap_memory, or neither"
                )
            if self._cpu_cores is not None and self._heap is None:
                raise InvalidArgumentError(
                    f"slot sharing group {self._name!r} names cpu cores but no heap memory; "
                    "call set_cpu_cores and set_task_heap_memory, or neither"
                )
            return SlotSharingGroup(
                self._name,
                self._cpu_cores,
                self._heap,
                self._off_heap,
                self._managed,
                dict(self._external),
            )
