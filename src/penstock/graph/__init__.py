"""The logical program: nodes and edges as immutable values, nothing about how they run."""
