"""Penstock: Flink's DataStream API in Python, with Spark as the engine.

Importing this package loads nothing else: workers unpickle from it all the time.
"""

__version__ = "0.1.0"
