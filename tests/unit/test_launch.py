"""Settings that a program is started with: a file, the command line, and the program above them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import options
from penstock.common import Configuration
from penstock.config_file import read_config_file
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError
from penstock.launch import Launch, base_configuration, launched


def _file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return str(path)


def test_nested_and_flat_keys_mean_the_same(tmp_path: Path) -> None:
    text = """\
parallelism.default: 4
execution:
  checkpointing:
    dir: /data/checkpoints   # a comment
    interval: 10 s
  checkpointing.mode: AT_LEAST_ONCE
pipeline.jars: [a.jar, b.jar]
python:
  files:
    - one.py
    - two.py
job.owner: no
job.start: 1:30
pipeline.name:
"""
    assert read_config_file(_file(tmp_path, text)) == {
        "parallelism.default": "4",
        "execution.checkpointing.dir": "/data/checkpoints",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "AT_LEAST_ONCE",
        "pipeline.jars": "a.jar;b.jar",
        "python.files": "one.py,two.py",
        "job.owner": "no",
        "job.start": "1:30",
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    assert read_config_file(_file(tmp_path, text)) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "a is set twice in .*, again in line 2"),
        ("a.b: 1\na:\n  b: 2\n", "a.b is set twice"),
        ("- a\n", "must hold keys and values"),
        ("a: [1\n", "is not YAML"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read_config_file(_file(tmp_path, text))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot read the configuration file"):
        read_config_file(str(tmp_path / "none.yaml"))


def test_the_file_below_the_command_line_below_the_program(tmp_path: Path) -> None:
    path = _file(
        tmp_path, "parallelism.default: 1\nstate.checkpoints.dir: /file\npipeline.name: file\n"
    )
    given = {"parallelism.default": "2", "execution.checkpointing.dir": "/line"}
    with launched(Launch(path, given)):
        settings = Configuration().set_string("parallelism.default", "3")
        env = StreamExecutionEnvironment.get_execution_environment(settings)

    assert env.get_parallelism() == 3
    taken = env._configuration.to_dict()
    assert taken["execution.checkpointing.dir"] == "/line"
    assert taken["pipeline.name"] == "file"
    assert "state.checkpoints.dir" not in taken


def test_the_program_wins_by_an_older_name_too(tmp_path: Path) -> None:
    with launched(Launch(settings={"execution.checkpointing.dir": "/line"})):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.configure(Configuration().set_string("state.checkpoints.dir", "/program"))
    assert env._configuration.get(options.CHECKPOINT_DIR) == "/program"


def test_a_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs that Python or spark-submit starts."""
    monkeypatch.setenv("PENSTOCK_CONF", _file(tmp_path, "parallelism.default: 7\n"))
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_parallelism() == 7


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("penstock.job-idd", "did you mean 'penstock.job-id'"),
        ("penstock.novelty", "unknown option"),
        ("paralelism.default", "did you mean 'parallelism.default'"),
        ("execution.checkpoint.dir", "did you mean 'execution.checkpointing.dir'"),
    ],
)
def test_mistyped_keys_are_refused(key: str, hint: str) -> None:
    with launched(Launch(settings={key: "1"})), pytest.raises(InvalidArgumentError, match=hint):
        base_configuration()


@pytest.mark.parametrize(
    "key",
    [
        "threshold",
        "taskmanager.numberOfTaskSlots",
        "execution.checkpointing.interval-during-backlog",
        "python.client.executable",
        "task.cancellation.timers.timeout",
    ],
)
def test_keys_of_others_are_kept(key: str) -> None:
    with launched(Launch(settings={key: "5"})):
        assert base_configuration().to_dict() == {key: "5"}


def test_a_value_of_the_wrong_type_names_its_origin(tmp_path: Path) -> None:
    path = _file(tmp_path, "parallelism:\n  default: many\n")
    with (
        launched(Launch(path)),
        pytest.raises(InvalidArgumentError, match=r"parallelism.default .* \(in .*config.yaml\)"),
    ):
        base_configuration()
