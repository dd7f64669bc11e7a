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

import pytest

from penstock.common import Configuration
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
        out.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{about}/RECORD", "")


def run(*command: str, directory: Path, text: str | None = None) -> list[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "PENSTOCK"))}
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
