"""Spark's errors, said shortly."""

from __future__ import annotations

from penstock.driver.spark_errors import engine_error

_TEXT = """An error occurred while calling o71.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: disk full
\tat org.apache.spark.Somewhere.something(Somewhere.scala:1)
"""


def test_the_reason_is_named_not_the_call():
    error = engine_error(RuntimeError(_TEXT))
    assert str(error) == (
        "Spark could not run the epoch: org.apache.spark.SparkException: "
        "Job aborted due to stage failure: disk full"
    )
    assert error.details == _TEXT


def test_known_causes_come_first_and_the_text_stays():
    text = _TEXT.replace("disk full", "ExecutorLostFailure (executor 1 exited)")
    error = engine_error(RuntimeError(text))
    assert str(error).startswith("an executor was lost: org.apache.spark.SparkException")
    assert error.details == text


def test_an_error_without_words():
    assert "no reason given" in str(engine_error(RuntimeError()))
