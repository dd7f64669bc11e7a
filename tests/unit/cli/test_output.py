"""Numbers and tables as people read them, and exit codes as scripts do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock import errors
from penstock.cli import exit_codes, output

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "command-line.md"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.9, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h")],
)
def test_spans(seconds: float, words: str) -> None:
    assert output.in_words(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes(size: int, words: str) -> None:
    assert output.in_bytes(size) == words


def test_a_table_in_a_pipe_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    output.print_table(("name", "count"), [("a\nb", 1), (long, 20_000)], "nothing")
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "COUNT"]
    assert first.split() == ["a", "b", "1"]
    assert second == f"{long}  20,000"


@pytest.mark.parametrize(("column", "lines"), [("path", 1), ("text", 3)])
def test_a_table_on_a_terminal(
    column: str,
    lines: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A path stays in one piece, so that it can be selected; what looks like markup is none."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    output.print_table(("state", column), [("[bold]x", "/a" * 40)], "nothing")
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert sum("/a/a" in line for line in printed.splitlines()) == lines
    assert "[bold]x" in printed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidArgumentError("x"), exit_codes.USAGE),
        (errors.JobNotFoundError.of("x", []), exit_codes.NOT_FOUND),
        (errors.SnapshotNotFoundError.at("x", False), exit_codes.NOT_FOUND),
        (errors.CheckpointMismatchError("x"), exit_codes.REFUSED),
        (errors.LeaseHeldError("x"), exit_codes.REFUSED),
        (errors.CheckpointCorruptError.of("x", "y"), exit_codes.CORRUPT),
        (errors.JobCancelledError.of("x"), exit_codes.CANCELLED),
        (errors.JobUnreachableError.of("x", 1, "y"), exit_codes.FAILED),
        (errors.RemoteJobError.of("x", "CheckpointCorruptError", "y"), exit_codes.CORRUPT),
        (errors.RemoteJobError.of("x", "OSError", "y"), exit_codes.FAILED),
        (errors.RemoteJobError.of("x", "InvalidArgumentError", "y"), exit_codes.USAGE),
        (KeyboardInterrupt(), exit_codes.INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_codes.code_of(error) == code


def test_a_wrong_argument_in_a_program_is_not_one_of_the_command() -> None:
    assert exit_codes.code_of_program(errors.InvalidArgumentError("x")) == exit_codes.FAILED
    assert exit_codes.code_of_program(errors.LeaseHeldError("x")) == exit_codes.REFUSED


def test_the_page_has_all_codes() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)}
    ours = {value for name, value in vars(exit_codes).items() if name.isupper() and name[0] != "_"}
    assert documented == ours
