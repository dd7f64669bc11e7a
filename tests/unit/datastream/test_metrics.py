from __future__ import annotations

import pytest

from penstock.errors import InvalidArgumentError
from penstock.metrics import Meter, MetricGroup


def test_metrics_are_found_by_dotted_name() -> None:
    group = MetricGroup(("task",))
    group.counter("records").inc(5)
    group.counter("records").dec()
    inner = group.add_group("user").add_group("region", "north")
    inner.gauge("size", lambda: 7)
    for value in (1, 2, 6):
        inner.distribution("latency").update(value)
    assert inner.get_scope_components() == ("task", "user", "region", "north")
    assert group.snapshot() == {
        "task.records": 4,
        "task.user.region.north.size": 7,
        "task.user.region.north.latency": {"count": 3, "sum": 9, "min": 1, "max": 6, "mean": 3.0},
    }


def test_a_group_asked_for_twice_is_the_same() -> None:
    group = MetricGroup()
    group.add_group("a").counter("n").inc()
    assert group.add_group("a").counter("n").get_count() == 1


def test_a_later_gauge_replaces_the_earlier() -> None:
    group = MetricGroup()
    group.gauge("g", lambda: 1)
    group.gauge("g", lambda: 2)
    assert group.snapshot() == {"g": 2}


def test_a_meter_forgets_what_is_older_than_its_span() -> None:
    now = 100.0
    meter = Meter(10, clock=lambda: now)
    for second in range(20):
        now = 100.0 + second
        meter.mark_event(3)
    assert meter.get_count() == 60
    assert meter.get_rate() == 3.0
    now += 100
    assert meter.get_rate() == 0.0
    assert meter.get_count() == 60


def test_an_empty_distribution_has_no_extremes() -> None:
    group = MetricGroup()
    group.distribution("d")
    assert group.snapshot()["d"]["min"] is None


def test_a_name_belongs_to_one_kind() -> None:
    group = MetricGroup(("task",))
    group.counter("n")
    with pytest.raises(InvalidArgumentError, match=r"'task\.n' is already a counter"):
        group.meter("n")
    with pytest.raises(InvalidArgumentError, match="callable"):
        group.gauge("g", 3)  # type: ignore[arg-type]
