"""Bytes at rest: local stores, checkpoint files and the file system under them.

Knows nothing of Spark, of operators or of types: keys and values are bytes here. It imports
nothing of ours but ``penstock.errors``, so that it runs on workers and in plain processes alike.
"""
