"""The warning about state that only grows."""

from __future__ import annotations

import logging

import pytest

from penstock.driver.housekeeping import GrowthWatch
from penstock.storage.file_info import FileInfo


def image(rows: int) -> tuple[FileInfo, ...]:
    return (FileInfo("state/x", rows, rows, "", "image", (("op", "seen"),), (0, 127)),)


def warnings(caplog: pytest.LogCaptureFixture, sizes: list[int]) -> list[str]:
    watch = GrowthWatch(images=3, entries=100)
    with caplog.at_level(logging.WARNING, logger="penstock"):
        for rows in sizes:
            watch.seen("vertex", 0, image(rows))
    return [record.getMessage() for record in caplog.records]


def test_growth_from_image_to_image_is_told_once(caplog):
    (message,) = warnings(caplog, [100, 110, 120, 130, 140])
    assert "state seen of vertex only grows" in message
    assert "from 100 to 120 entries" in message
    assert "StateTtlConfig" in message


@pytest.mark.parametrize("sizes", [[100, 110, 105, 120], [1, 2, 3, 4], [500, 500, 500], [900]])
def test_state_that_comes_and_goes_is_not_told(caplog, sizes):
    assert warnings(caplog, sizes) == []
