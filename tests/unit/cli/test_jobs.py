"""Commands about running jobs, as far as no job is needed for it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from penstock.cli.finding import matching
from penstock.driver import registry


def test_nothing_runs(said: Any, told: Any) -> None:
    assert said("list") == "No jobs are running.\n"
    assert told("list") == {"jobs": []}


def test_a_table_for_people(said: Any, entry: Any) -> None:
    registry.enter(entry())
    registry.enter(entry("bb22", host="elsewhere.example", started=1_700_000_000_001))
    header, first, second = said("list").splitlines()
    columns = ["RUN", "NAME", "STATUS", "EPOCH", "P", "ON", "FOR", "PROCESS", "PROGRAM"]
    assert header.split() == columns
    assert first.split()[:3] == ["aa11", "Alerts", "RUNNING"]
    assert first.split()[-4:] == [str(os.getpid()), "on", entry().host, "alerts.py"]
    assert second.split()[:3] == ["bb22", "Alerts", "ELSEWHERE"]


def test_jobs_with_one_name_are_told_apart(said: Any, entry: Any) -> None:
    for run_id, job_id in (("aa11", "a"), ("bb22", "b")):
        registry.enter(entry(run_id, job_id=job_id))
    assert [line.split("  ")[1] for line in said("list").splitlines()[1:]] == [
        "Alerts (a)",
        "Alerts (b)",
    ]


def test_info(said: Any, told: Any, entry: Any) -> None:
    registry.enter(entry(root="/data/alerts"))
    text = said("info", "al")
    assert "Program      /jobs/alerts.py --fast 'two words'\n" in text
    assert "Checkpoints  /data/alerts\n" in text
    assert set(told("info", "aa11")) == {
        *("run_id", "job_id", "name", "status", "error", "program", "arguments", "pid", "host"),
        *("executor", "parallelism", "started", "ended", "seconds", "epoch", "epoch_seconds"),
        *("records_in", "checkpoints", "savepoints"),
    }
    assert told("info", "aa11")["started"] == "2023-11-14T22:13:20.000Z"


def test_info_of_one_that_has_ended(told: Any, entry: Any) -> None:
    for run_id, error in (("aa11", "old"), ("bb22", "new")):
        registry.leave(entry(run_id), "FAILED", error)
    info = told("info", "alerts")
    assert (info["run_id"], info["status"], info["error"]) == ("bb22", "FAILED", "new")


def test_names_that_several_jobs_had(told: Any, said: Any, entry: Any) -> None:
    for run_id, job_id in (("aa11", "one"), ("bb22", "two"), ("cc33", "one")):
        registry.leave(entry(run_id, job_id=job_id), "FINISHED")
    assert told("info", "Alerts")["run_id"] == "cc33"
    assert told("info", "two")["run_id"] == "bb22"
    text = said("info", "Al", code=3)
    assert "bb22 ('Alerts', job id two)" in text
    assert "aa11" not in text


def test_one_that_has_ended_cannot_be_cancelled(said: Any, entry: Any) -> None:
    registry.leave(entry(), "FINISHED")
    text = said("cancel", "aa11", code=3)
    assert text == ("penstock: job 'aa11' has ended already: FINISHED; none of yours is running\n")


def test_unknown(told: Any, entry: Any) -> None:
    assert told("info", "x", code=3)["error"] == {
        "code": 3,
        "type": "JobNotFoundError",
        "message": "there is no job 'x'; none of yours is running",
    }
    registry.enter(entry())
    message = told("cancel", "x", code=3)["error"]["message"]
    assert message == "there is no job 'x'; running are aa11 ('Alerts', job id alerts)"


def test_ambiguous(said: Any, entry: Any) -> None:
    registry.enter(entry("ab1", job_id="one"))
    registry.enter(entry("ab2", job_id="two"))
    text = said("stop", "ab", code=3)
    assert text == (
        "penstock: 'ab' may be any of ab1 ('Alerts', job id one), ab2 ('Alerts', job id two); "
        "give more of its run id\n"
    )


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("ab", ["1"]),  # a whole name comes before the beginnings of others
        ("abc", ["2"]),
        ("Ab", ["1", "2"]),
        ("3", ["3"]),
        ("b", []),
        ("", ["1", "2", "3"]),
    ],
)
def test_matching(wanted: str, found: list[str], entry: Any) -> None:
    entries = [
        entry("1", job_id="ab", name="Abc"),
        entry("2", job_id="abcd", name="Abd"),
        entry("3", job_id="xy", name="Xy"),
    ]
    assert [one.run_id for one in matching(wanted, entries)] == found


def test_one_that_cannot_be_reached(told: Any, entry: Any) -> None:
    registry.enter(entry("aa11", host="elsewhere.example"))
    error = told("cancel", "aa11", code=1)["error"]
    assert "runs on elsewhere.example" in error["message"]
