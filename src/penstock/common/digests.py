"""Short stable digests of texts, for names that must be the same on every machine."""

from __future__ import annotations

from xxhash import xxh3_64_hexdigest


def text_digest(text: str) -> str:
    """Sixteen hex digits."""
    return str(xxh3_64_hexdigest(text.encode("utf-8", "surrogatepass")))
