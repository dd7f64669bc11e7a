"""What runs in a contender's own process: one module per contender."""
