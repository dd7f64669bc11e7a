"""State as the command line shows it, in the checkpoints of a job that died."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.common import Configuration, Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import UserFunctionError

FIRST = {"k0": 2, "k1": 1, "k2": 1}
LAST = {"k0": 2, "k1": 3, "k2": 1, "k3": 2}
"""Counts by key in the two epochs that the job has kept."""


class Counting(KeyedProcessFunction):
    """How many numbers a key has had, typed, and what `note` makes of the last, pickled."""

    def __init__(self, note: Callable[[int], Any]) -> None:
        self._note = note

    def open(self, context: Any) -> None:
        self._count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._last = context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: int, context: Any) -> Any:
        if value == 99:
            raise ValueError("enough")
        self._count.update((self._count.value() or 0) + 1)
        self._last.update(self._note(value))
        yield value


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Runs the job until it dies: its directory of checkpoints."""

    def run(note: Callable[[int], Any] = lambda n: {"last": n}) -> Path:
        monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
        settings = {
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.checkpointing.num-retained": "10",
            "penstock.job-id": "job",
            "penstock.source.max-records-per-epoch": "4",
            "restart-strategy.type": "none",
            "parallelism.default": "1",
        }
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict(settings)
        )
        numbers = env.from_collection([0, 1, 2, 0, 1, 3, 1, 3, 99])
        keyed = numbers.key_by(lambda n: f"k{n}")
        keyed.process(Counting(note)).uid("counts").print().uid("out")
        with pytest.raises(UserFunctionError):
            env.execute("counting")
        return tmp_path / "checkpoints" / "job"

    return run


def test_ls(run: Any, told: Any, said: Any) -> None:
    root = run()
    states = told("state", "ls", str(root))["states"]
    (count,) = [state for state in states if state["state"] == "count"]
    assert (count["operator"], count["kind"], count["entries"]) == ("counts", "value", 4)
    assert {"operator", "state", "kind", "type", "entries", "bytes", "expiring"} == set(count)
    assert any(
        line.split()[:3] == ["counts", "count", "value"]
        for line in said("state", "ls", str(root)).splitlines()
    )


def test_show(run: Any, told: Any, said: Any) -> None:
    root = str(run())
    shown = told("state", "show", root, "counts", "count")
    assert {row["key"]: row["value"] for row in shown["rows"]} == LAST
    assert not shown["more"]
    one = told("state", "show", root, "counts", "count", "--key", "k1")
    assert [(row["key"], row["value"]) for row in one["rows"]] == [("k1", 3)]
    assert told("state", "show", root, "counts", "count", "--key", '"k1"') == one
    assert told("state", "show", root, "counts", "count", "--key", "none")["rows"] == []
    first = told("state", "show", root, "counts", "count", "--limit", "2")
    assert (len(first["rows"]), first["more"]) == (2, True)
    assert said("state", "show", root, "counts", "count").splitlines()[0].split() == [
        *("KEY", "VALUE")
    ]


def test_pickled_values_are_opened_in_ones_own(
    run: Any, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(run())
    show = ("state", "show", root, "counts", "last", "--key", "k3")
    assert told(*show)["rows"][0]["value"] == {"last": 3}

    monkeypatch.setattr("penstock.cli.commands.states.is_trusted", lambda snapshot: False)
    assert told(*show)["rows"][0]["value"].startswith("<pickled, ")
    assert told(*show, "--trust-pickle")["rows"][0]["value"] == {"last": 3}


def test_without_the_programs_modules(
    run: Any, said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes_of_program.py").write_text(
        "class Note:\n    def __init__(self, n):\n        self.n = n\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    root = str(run(importlib.import_module("notes_of_program").Note))
    monkeypatch.setattr(sys, "path", sys.path[1:])
    monkeypatch.delitem(sys.modules, "notes_of_program")

    text = said("state", "show", root, "counts", "last")
    assert text.count("<pickled, ") == 4
    assert "No module named 'notes_of_program'; name their directory in PYTHONPATH" in text


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_export(ending: str, run: Any, told: Any, tmp_path: Path) -> None:
    out = tmp_path / f"counts.{ending}"
    done = told("state", "export", str(run()), "counts", "count", "-o", str(out))
    assert (done["rows"], done["file"]) == (4, str(out))
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert {row["key"]: row["value"] for row in rows} == LAST


def test_export_to_nowhere(run: Any, told: Any) -> None:
    out = "/proc/nowhere/x.jsonl"
    error = told("state", "export", str(run()), "counts", "count", "-o", out, code=1)["error"]
    assert "/proc/nowhere" in error["message"]


def test_diff(run: Any, told: Any, said: Any) -> None:
    root = run()
    old, new = (str(root / "epochs" / f"{epoch}.json") for epoch in (0, 1))
    shown = told("state", "show", old, "counts", "count")["rows"]
    assert {row["key"]: row["value"] for row in shown} == FIRST

    (count,) = [s for s in told("state", "diff", old, new)["states"] if s["state"] == "count"]
    assert count == {
        "operator": "counts",
        "state": "count",
        "kind": "value",
        "added": 1,
        "removed": 0,
        "changed": 1,
        "same": 2,
    }
    changes = told("state", "diff", old, new, "counts", "count")["changes"]
    changes.sort(key=lambda change: change["how"])
    assert changes == [
        {"how": "added", "before": None, "after": {"key": "k3", "value": 2}},
        {
            "how": "changed",
            "before": {"key": "k1", "value": 1},
            "after": {"key": "k1", "value": 3},
        },
    ]
    lines = said("state", "diff", old, new, "counts", "count").splitlines()
    assert ["changed", "k1", "1", "3"] in [line.split() for line in lines]
    assert said("state", "diff", new, new, "counts", "count") == "They are alike.\n"


def test_unknown_names(run: Any, told: Any) -> None:
    root = str(run())
    error = told("state", "show", root, "count", "count", code=2)["error"]
    assert "did you mean 'counts'" in error["message"]
    error = told("state", "diff", root, root, "counts", "coun", code=2)["error"]
    assert "has no state 'coun'" in error["message"]
    source = next(s for s in told("state", "ls", root)["states"] if s["state"] == "_positions")
    error = told("state", "diff", root, root, source["operator"], "_positions", code=2)["error"]
    assert "not kept by key" in error["message"]
    assert told("state", "show", root + "x", "a", "b", code=3)["error"]["code"] == 3
    message = told("state", "diff", root, root, "counts", code=2)["error"]["message"]
    assert "OPERATOR and STATE" in message
