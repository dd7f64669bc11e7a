"""What a probe reads from an answer of the queries that peers run. Standard library only.

A position is the end of the answer's window: it is out when the input has been read to there, and
as much further as is waited for late events.
"""

from __future__ import annotations

import zlib
from operator import itemgetter
from typing import Any

WINDOW_MILLIS = 10_000
SLIDE_MILLIS = 2_000
GAP_MILLIS = 10_000
OUT_OF_ORDER_MILLIS = 4_000


def digest_of(answer: Any) -> int:
    """Everything that it says, as a number to add up."""
    return zlib.crc32(repr(tuple(answer)).encode())


q5_position = itemgetter(0)
"""Of end, auction, bids."""

q11_position = itemgetter(3)
"""Of bidder, bids, beginning, end."""


def q7_position(answer: Any) -> int:
    """Of auction, bidder, price, time."""
    time: int = answer[3]
    return time - time % WINDOW_MILLIS + WINDOW_MILLIS


def q8_position(answer: Any) -> int:
    """Of person, name, beginning."""
    start: int = answer[2]
    return start + WINDOW_MILLIS
