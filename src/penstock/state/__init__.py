"""Keyed state: key groups, key encoding, live state objects over a byte store."""
