"""What runs inside tasks: operators, buffers, state wiring. Knows nothing of Spark."""
