"""Metrics that user functions register, under PyFlink's names."""

from __future__ import annotations

from penstock.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]
