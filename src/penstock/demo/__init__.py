"""The sensor demo: `python -m penstock demo`. Loads nothing by itself, since workers import it."""
