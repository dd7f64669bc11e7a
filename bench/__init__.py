"""Benchmarks: ``python -m bench [names…] [--quick|--full|--smoke] [--out DIR]``; ``make bench``.

What is measured and how to read it: docs/performance.md.
"""
