"""Benchmarks: ``python -m bench [names…] [--quick] [--full] [--smoke]``, or ``make bench``.

What is measured and how to read it: docs/performance.md.
"""
