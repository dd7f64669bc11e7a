"""All arguments: what they are called, and that something is behind each command."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import __version__, options
from penstock.cli.commands.programs import launch_settings
from penstock.cli.main import _command, main
from penstock.cli.parser import Parser
from penstock.cli.parsers import command_parser


def _commands(parser: Parser, path: str = "penstock") -> Iterator[tuple[str, Parser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield f"{path} {name}", sub
                yield from _commands(sub, f"{path} {name}")


ALL = dict(_commands(command_parser()))


def test_all_commands_are_there() -> None:
    assert [name.removeprefix("penstock ") for name in ALL] == [
        *("run", "plan", "list", "info", "cancel", "stop"),
        *("savepoint", "savepoint create", "savepoint list", "savepoint show"),
        *("savepoint dispose", "checkpoints", "state", "state ls", "state show", "state export"),
        *("state diff", "demo", "version", "completion"),
    ]


@pytest.mark.parametrize("name", ALL)
def test_a_command_has_work_and_help(name: str) -> None:
    parser = ALL[name]
    command = parser.get_default("command")
    if command is not None:
        assert callable(_command(command))
    text = parser.format_help()
    assert parser.description
    assert parser.description[:40] in text


@pytest.mark.parametrize(
    "name",
    sorted(set(ALL) - {f"penstock {n}" for n in ("savepoint", "state", "demo", "completion")}),
)
def test_whatever_prints_can_print_json(name: str) -> None:
    assert "--json" in ALL[name].format_help()


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "checkpoints" in capsys.readouterr().out
    assert main(["savepoint"]) == 0
    assert "dispose" in capsys.readouterr().out


def test_version_as_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"penstock {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["dance"], ["run"], ["run", "-D", "novalue", "p.py"], ["run", "--nonsense", "p.py"]],
)
def test_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "penstock: " in capsys.readouterr().err

    monkeypatch.setattr(sys, "argv", ["penstock", "--json"])
    with pytest.raises(SystemExit):
        main(arguments)
    assert json.loads(capsys.readouterr().err)["error"]["code"] == 2


def test_flags_are_settings_and_stand_above_them() -> None:
    flags = [
        *("-D", "parallelism.default=2", "-Dthreshold=a=b", "-p", "4", "--name", "n"),
        *("--master", "local[2]", "--job-id", "j", "--checkpoint-dir", "/c"),
        *("--savepoint-dir", "/s", "-s", "/s/1", "--allow-non-restored-state", "--anew"),
        *("--trust-pickle", "--reset-source", "a", "--reset-source", "b", "--profile-dir", "/p"),
    ]
    parsed = command_parser().parse_args(["run", *flags, "job.py", "-p", "9", "--name", "x"])
    settings = launch_settings(parsed)
    assert settings == {
        "parallelism.default": "4",
        "threshold": "a=b",
        "pipeline.name": "n",
        "penstock.spark.master": "local[2]",
        "penstock.job-id": "j",
        "execution.checkpointing.dir": "/c",
        "execution.checkpointing.savepoint-dir": "/s",
        "execution.state-recovery.path": "/s/1",
        "execution.state-recovery.ignore-unclaimed-state": "true",
        "penstock.state-recovery.anew": "true",
        "penstock.trust-pickle": "true",
        "penstock.state-recovery.reset-sources": "a,b",
        "penstock.profile.dir": "/p",
        "penstock.profile.enabled": "true",
    }
    assert parsed.arguments == ["-p", "9", "--name", "x"]
    known = {option.key for option in options.all_options()}
    assert set(settings) - known == {"threshold"}


def test_a_profile_goes_where_the_settings_say_unless_a_flag_does() -> None:
    given = ["run", "-D", "penstock.profile.dir=/d", "--profile", "job.py"]
    settings = launch_settings(command_parser().parse_args(given))
    assert settings == {"penstock.profile.dir": "/d", "penstock.profile.enabled": "true"}


def test_flags_that_are_not_given_set_nothing() -> None:
    parsed: Any = command_parser().parse_args(["run", "job.py"])
    assert launch_settings(parsed) == {}
