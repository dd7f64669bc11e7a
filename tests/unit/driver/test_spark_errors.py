"""Spark's errors, said shortly."""

from __future__ import annotations

from penstock.driver.spark_errors import engine_error
from penstock.errors import InvalidProgramError

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


_IN_PYTHON = """An error occurred while calling o71.collectToPython.
: org.apache.spark.SparkException: in a worker: Traceback (most recent call last):
  File "stages.py", line 1, in __call__
    plan = self.plan.load()
  File "plan_file.py", line 64, in load_plan
    program = cloudpickle.loads(content)
{error}
 SQLSTATE: 38000
\tat org.apache.spark.Somewhere.something(Somewhere.scala:1)
"""


def test_what_python_says_is_better_than_that_it_says_something():
    text = _IN_PYTHON.format(error="zlib.error: Error -3: bad data")
    assert str(engine_error(RuntimeError(text))) == (
        "Spark could not run the epoch: zlib.error: Error -3: bad data"
    )


def test_a_module_that_workers_do_not_have():
    text = _IN_PYTHON.format(error="ModuleNotFoundError: No module named 'mine'")
    error = engine_error(RuntimeError(text))
    assert isinstance(error, InvalidProgramError)
    assert "No module named 'mine'; modules beside the program are sent" in str(error)
