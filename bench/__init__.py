"""Benchmarks: ``python -m bench [names…] [--quick|--full|--smoke] [--out DIR]``, or ``make bench``.

What is measured and how to read it: docs/performance.md.
"""
