"""What a process function may ask of the clocks. The runtime implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Reads both clocks; sets and deletes timers of the current key.

    A timer is identified by key, clock and time: setting the same one twice fires it once.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Milliseconds since the epoch on the task's clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event-time watermark in milliseconds; the smallest long before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the clock reaches `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the watermark reaches `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget that timer of the current key; nothing happens if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget that timer of the current key; nothing happens if there is none."""
