"""What a job needs beside its program: what may be named, and what is said about the rest."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.driver.dependencies import Archive, Dependencies, Requirements, class_paths, jars
from penstock.driver.import_bundle import code_bundle
from penstock.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program adds stays with its process, which here is everybody's."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "module.py").write_text("X = 1\n")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "a.py").write_text("A = 1\n")
    (tmp_path / "text.txt").write_text("text")
    (tmp_path / "false.zip").write_text("text")
    (tmp_path / "false.tar.gz").write_text("text")
    (tmp_path / "false.jar").write_text("text")
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "true.zip", "w") as out:
        out.writestr("b.py", "B = 1\n")
    with zipfile.ZipFile(tmp_path / "true.jar", "w") as out:
        out.writestr("C.class", "")
    with tarfile.open(tmp_path / "true.tgz", "w:gz") as out:
        out.add(tmp_path / "text.txt", "text.txt")
    return tmp_path


def environment() -> StreamExecutionEnvironment:
    settings = Configuration.from_dict({"penstock.executor": "local"})
    return StreamExecutionEnvironment.get_execution_environment(settings)


def test_methods_and_keys_say_the_same(here: Path) -> None:
    env = environment()
    env.add_python_file(str(here / "module.py"))
    env.add_python_file((here / "directory").as_uri())
    env.add_python_file(str(here / "module.py"))
    env.add_python_archive(str(here / "true.tgz"), "data/")
    env.add_python_archive(str(here / "true.zip"))
    env.set_python_requirements(str(here / "text.txt"), str(here / "wheels"))
    env.set_python_executable("data/bin/python")
    env.add_jars(str(here / "true.jar"), "hdfs://host/far.jar")
    env.add_classpaths("file:///opt/a", "/opt/b")
    configuration = env._configuration

    assert Dependencies.of(configuration) == Dependencies(
        (str(here / "module.py"), str(here / "directory")),
        (Archive(str(here / "true.tgz"), "data"), Archive(str(here / "true.zip"), "true.zip")),
        Requirements(str(here / "text.txt"), str(here / "wheels")),
        "data/bin/python",
    )
    assert configuration.get_string("python.files", "") == f"{here}/module.py,{here}/directory"
    assert configuration.get_string("python.archives", "").startswith(f"{here}/true.tgz#data,")
    assert configuration.get_string("python.requirements", "") == f"{here}/text.txt#{here}/wheels"
    assert jars(configuration) == [f"file://{here}/true.jar", "hdfs://host/far.jar"]
    assert class_paths(configuration) == ["/opt/a", "/opt/b"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda e, d: e.add_python_file(f"{d}/missing.py"), "missing.py does not exist on this"),
        (lambda e, d: e.add_python_file(f"{d}/text.txt"), "neither a .py file nor a directory"),
        (lambda e, d: e.add_python_file(f"{d}/true.tgz"), "use add_python_archive"),
        (lambda e, d: e.add_python_file(f"{d}/false.zip"), "false.zip is not a zip file"),
        (lambda e, d: e.add_python_file("s3://bucket/a.py"), "s3:// is not supported for a Python"),
        (lambda e, d: e.add_python_file(None), "Python file must be a path"),
        (lambda e, d: e.add_python_archive(f"{d}/missing.zip"), "archive .* does not exist"),
        (lambda e, d: e.add_python_archive(f"{d}/directory"), "use add_python_file"),
        (lambda e, d: e.add_python_archive(f"{d}/text.txt"), "must be a file called .zip"),
        (lambda e, d: e.add_python_archive(f"{d}/false.tar.gz"), "cannot be read"),
        (lambda e, d: e.add_python_archive(f"{d}/true.zip", "/abs"), "target_dir must be"),
        (lambda e, d: e.add_python_archive(f"{d}/true.zip", "a/../../b"), "target_dir must be"),
        (lambda e, d: e.add_python_archive(f"{d}/true.zip", ""), "target_dir must be"),
        (lambda e, d: e.set_python_requirements(f"{d}/r.txt"), "requirements file .* not exist"),
        (lambda e, d: e.set_python_requirements(f"{d}/directory"), "must be a file"),
        (lambda e, d: e.set_python_requirements(f"{d}/text.txt", f"{d}/x"), "cache .* not exist"),
        (lambda e, d: e.set_python_requirements(f"{d}/text.txt", f"{d}/text.txt"), "a directory"),
        (lambda e, d: e.set_python_executable(""), "python_exec must be"),
        (lambda e, d: e.add_jars(f"{d}/missing.jar"), "jar .* does not exist"),
        (lambda e, d: e.add_jars(f"{d}/false.jar"), "it is no jar, or damaged"),
        (lambda e, d: e.add_jars(3), "a jar must be"),
        (lambda e, d: e.add_classpaths("http://host/a"), "http:// is not supported for a class"),
    ],
)
def test_bad_input_is_refused_at_the_call(
    here: Path, call: Callable[[Any, Path], Any], sentence: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        call(environment(), here)


@pytest.mark.parametrize("character", [",", ";", "#"])
def test_a_path_must_fit_into_the_settings(tmp_path: Path, character: str) -> None:
    odd = tmp_path / f"a{character}b.py"
    odd.touch()
    with pytest.raises(InvalidArgumentError, match="which settings use between paths; rename it"):
        environment().add_python_file(str(odd))


def test_keys_are_checked_when_the_job_starts(here: Path) -> None:
    env = environment()
    env.configure(Configuration.from_dict({"python.files": f"{here}/missing.py"}))
    with pytest.raises(InvalidArgumentError, match=r"missing\.py does not exist"):
        list(env.from_collection([1]).execute_and_collect())


def test_two_archives_cannot_be_one_directory(here: Path) -> None:
    env = environment()
    env.add_python_archive(str(here / "true.zip"), "data")
    env.add_python_archive(str(here / "true.tgz"), "data")
    with pytest.raises(InvalidArgumentError, match="the same target directory, 'data'"):
        list(env.from_collection([1]).execute_and_collect())


def test_a_bundle_is_called_after_what_is_in_it(here: Path) -> None:
    beside, files = [str(here / "module.py")], [str(here / "directory"), str(here / "true.zip")]
    one = code_bundle(beside, files)
    assert one is not None
    with zipfile.ZipFile(one.archive) as archive:
        assert sorted(archive.namelist()) == ["0/a.py", "1/true.zip", "beside/module.py"]
    assert one.imports == ("beside", "0", "1/true.zip")
    assert code_bundle(beside, files) == one

    (here / "directory" / "__pycache__").mkdir()
    (here / "directory" / "__pycache__" / "a.pyc").touch()
    assert code_bundle(beside, files) == one

    (here / "directory" / "a.py").write_text("A = 2\n")
    other = code_bundle(beside, files)
    assert other is not None
    assert other.name != one.name


def test_no_code_no_bundle(tmp_path: Path) -> None:
    assert code_bundle([], []) is None
