"""What a job needs beside its program gets to its workers, wherever they are."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, InvalidProgramError, UnsupportedFeatureError

MakeEnv = Callable[..., StreamExecutionEnvironment]

SOURCES = Path(__file__).parents[2] / "src"
QUICK_JVM = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
}
CLUSTER = "local-cluster[2,1,1024]"

# The classes of its records and its state are in a module beside it; a function imports another
# one, and all else, only when it is called.
PROGRAM = """
import os, sys
from kinds import Parcel, Weigh
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

here, master = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment(
    Configuration.from_dict({"penstock.spark.master": master, "python.files": f"{here}/single.py"})
)
env.set_parallelism(2)
env.add_python_file(f"{here}/directory")
env.add_python_file(f"{here}/zipped.zip")
env.add_python_archive(f"{here}/words.tar.gz", "words")
env.set_python_requirements(f"{here}/requirements.txt", f"{here}/wheels")

def gathered(number):
    import fromdirectory, fromwheel, fromzip, onlythere, single
    with open("words/data/word.txt") as file:
        word = file.read()
    parts = [single.PART, fromdirectory.part(), fromzip.PART, fromwheel.PART, onlythere.PART, word]
    return Parcel(number % 3, number, parts)

weights = env.from_sequence(1, 6).map(gathered).key_by(lambda parcel: parcel.key).process(Weigh())
for parcel in sorted(weights.execute_and_collect("shipped"), key=lambda p: p.weight):
    print(parcel.key, parcel.weight, *parcel.parts)
print(os.getcwd())
"""
KINDS = """
from dataclasses import dataclass
from penstock.common import Types
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor

@dataclass
class Parcel:
    key: int
    weight: int
    parts: list

class Weigh(KeyedProcessFunction):
    def open(self, context):
        self.last = context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, parcel, ctx):
        before = self.last.value() or Parcel(parcel.key, 0, [])
        assert isinstance(before, Parcel)
        self.last.update(Parcel(parcel.key, before.weight + parcel.weight, []))
        yield Parcel(parcel.key, before.weight + parcel.weight, parcel.parts)
"""
PARTS = "1 directory:2 3 4 5 six"
SHIPPED = [
    f"1 1 {PARTS}", f"2 2 {PARTS}", f"0 3 {PARTS}", f"1 5 {PARTS}", f"2 7 {PARTS}", f"0 9 {PARTS}",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program adds stays with its process, which here is everybody's."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory with one thing of each kind in it."""
    there = tmp_path / "there"
    (there / "directory" / "fromdirectory").mkdir(parents=True)
    (there / "directory" / "fromdirectory" / "__init__.py").write_text(
        "import os\ndef part():\n"
        "    with open(os.path.join(os.path.dirname(__file__), 'part.txt')) as file:\n"
        "        return file.read()\n"
    )
    (there / "directory" / "fromdirectory" / "part.txt").write_text("directory:2")
    (there / "single.py").write_text("PART = 1\n")
    with zipfile.ZipFile(there / "zipped.zip", "w") as out:
        out.writestr("fromzip.py", "PART = 3\n")
    with tarfile.open(there / "words.tar.gz", "w:gz") as out:
        info = tarfile.TarInfo("data/word.txt")
        info.size = 3
        out.addfile(info, io.BytesIO(b"six"))
    (there / "wheels").mkdir()
    write_wheel(there / "wheels", "fromwheel", "PART = 4\n")
    (there / "requirements.txt").write_text("fromwheel==1.0\n")
    return there


def write_wheel(directory: Path, name: str, source: str) -> None:
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as out:
        out.writestr(f"{name}.py", source)
        out.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        out.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        out.writestr(f"{about}/RECORD", "")


def run(*command: str, directory: Path, text: str | None = None) -> list[str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "PENSTOCK"))
    }
    done = subprocess.run(
        [sys.executable, *command],
        env={**kept, **QUICK_JVM, "PYTHONPATH": str(SOURCES)},
        cwd=directory,
        input=text,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.slow
def test_on_a_cluster(here: Path, tmp_path: Path) -> None:
    """Executors are processes of their own, with working directories of their own."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "main.py").write_text(PROGRAM)
    (program / "kinds.py").write_text(KINDS)
    (program / "onlythere.py").write_text("PART = 5\n")

    lines = run(str(program / "main.py"), str(here), CLUSTER, directory=tmp_path)

    assert lines == [*SHIPPED, str(tmp_path)]


NOTEBOOK = """
from dataclasses import dataclass
from penstock.datastream import StreamExecutionEnvironment
import kinds
env = StreamExecutionEnvironment.get_execution_environment()
@dataclass
class Own:
    key: int

def own(number):
    return kinds.Parcel(number, number, [Own(number)])

parcels = env.from_sequence(1, 3).map(own).key_by(lambda p: p.key).process(kinds.Weigh())
print(sorted((p.weight, p.parts == [Own(p.key)]) for p in parcels.execute_and_collect()))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_without_a_file(tmp_path: Path) -> None:
    """As in a notebook: classes and functions exist nowhere but in the running process."""
    (tmp_path / "kinds.py").write_text(KINDS)
    assert run("-", directory=tmp_path, text=NOTEBOOK) == ["[(1, True), (2, True), (3, True)]"]


def test_python_files(env: StreamExecutionEnvironment, here: Path) -> None:
    """The program may use them, too."""
    env.add_python_file(str(here / "directory"))
    env.add_python_file((here / "zipped.zip").as_uri())

    def parts(number: int) -> tuple[int, str, int]:
        import fromdirectory
        import fromzip

        return number, fromdirectory.part(), fromzip.PART

    assert parts(0) == (0, "directory:2", 3)
    found = env.from_sequence(1, 2).map(parts).execute_and_collect()
    assert sorted(found) == [(1, "directory:2", 3), (2, "directory:2", 3)]


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_requirements_of_the_local_executor(env: StreamExecutionEnvironment, here: Path) -> None:
    env.set_python_requirements(str(here / "requirements.txt"), str(here / "wheels"))

    def part(number: int) -> int:
        import fromwheel

        return int(fromwheel.PART)

    assert list(env.from_collection([1]).map(part).execute_and_collect()) == [4]


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_requirements_that_cannot_be_had(make_env: MakeEnv, here: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("a-package-that-is-nowhere==1.0\n")
    env = make_env({"python.requirements": f"{wanted}#{here / 'wheels'}"})
    stream = env.from_collection([1])
    with pytest.raises(InvalidProgramError, match=r"(?s)wanted.txt cannot .*that-is-nowhere"):
        list(stream.execute_and_collect())


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_archives_need_a_working_directory(env: StreamExecutionEnvironment, here: Path) -> None:
    env.add_python_archive(str(here / "words.tar.gz"))
    with pytest.raises(UnsupportedFeatureError, match=r"set penstock\.executor to spark"):
        list(env.from_collection([1]).execute_and_collect())


on_spark = pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)


@on_spark
def test_every_job_has_its_own(make_env: MakeEnv, tmp_path: Path) -> None:
    """Workers live on, and have a module of that name from the job before."""

    def version(number: int) -> tuple[str, bool]:
        import os

        import versioned

        return versioned.VERSION, os.path.exists("words")

    found = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "versioned.py").write_text(f"VERSION = {name!r}\n")
        env = make_env({"python.files": str(tmp_path / name / "versioned.py")})
        found += list(env.from_collection([1]).map(version).execute_and_collect())
    assert found == [("old", False), ("new", False)]


@on_spark
def test_a_python_in_an_archive(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    starter = tmp_path / "python"
    starter.write_text(f'#!/bin/sh\nexport STARTED_BY=archive\nexec {sys.executable} "$@"\n')
    starter.chmod(0o755)
    with tarfile.open(tmp_path / "python.tgz", "w:gz") as out:
        out.add(starter, "bin/python")
    env.add_python_archive(str(tmp_path / "python.tgz"), "venv")
    env.set_python_executable("venv/bin/python")

    def started_by(number: int) -> tuple[str, bool]:
        return os.environ.get("STARTED_BY", ""), os.path.exists("venv/bin/python")

    found = env.from_collection([1]).map(started_by).execute_and_collect()
    assert list(found) == [("archive", True)]


@on_spark
def test_a_python_that_is_not_there(env: StreamExecutionEnvironment) -> None:
    env.set_python_executable("/nowhere/python")
    with pytest.raises(InvalidArgumentError, match="/nowhere/python cannot be executed"):
        list(env.from_collection([1]).execute_and_collect())


@on_spark
def test_a_module_that_workers_do_not_have(
    env: StreamExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onlyhere.py").write_text("def double(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import onlyhere

    stream = env.from_collection([1]).map(onlyhere.double)
    with pytest.raises(InvalidProgramError, match=r"'onlyhere'; .* add_python_file"):
        list(stream.execute_and_collect())


@on_spark
def test_jars_for_a_session_that_runs(
    env: StreamExecutionEnvironment, spark: Any, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "added.jar", "w") as out:
        out.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    env.add_jars(str(tmp_path / "added.jar"))
    env.get_parallelism()
    env.from_sequence(1, 2).execute_and_collect(limit=1)
    assert "added.jar" in spark.sparkContext._jsc.sc().listJars().mkString()

    env.add_classpaths("file:///opt/classes")
    with pytest.raises(InvalidProgramError, match=r"'/opt/classes'.* Spark runs already"):
        list(env.from_sequence(1, 2).execute_and_collect())
