"""From the logical graph to the physical plan: checks, chains, levels, explain."""
