"""The operators: each a picklable description whose `open` makes the worker that runs in a task."""
