"""Formats of records as bytes, each in a module of its own."""
