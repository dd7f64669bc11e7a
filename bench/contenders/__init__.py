"""The keyed process function, run by each engine. Each module's `run` is one measurement."""
