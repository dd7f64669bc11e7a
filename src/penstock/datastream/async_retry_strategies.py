"""Retry strategies for asynchronous functions, under PyFlink's path."""

from __future__ import annotations

from typing import Any

from penstock.datastream._async_functions import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
    RetryPredicate,
)

__all__ = [
    "NO_RETRY_STRATEGY",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

NO_RETRY_STRATEGY: NoRetryStrategy[Any] = NoRetryStrategy()
