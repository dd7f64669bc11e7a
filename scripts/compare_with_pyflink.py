"""Run programs with PyFlink and with Penstock, and compare what they print.

    python scripts/compare_with_pyflink.py [PROGRAM ...] [--executor local] [--venv DIRECTORY]

Without programs: PyFlink's own DataStream examples that need no server, and the programs of
tests/pipelines/programs/for_pyflink. PyFlink gets a virtual environment of its own, made at the
first run (it needs Java 17). Lines are compared without the subtask in front and in any order,
since neither is fixed; everything else must be equal.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN = ROOT / "tests" / "pipelines" / "programs" / "for_pyflink"
VERSION = "2.3.0"
# What Flink's workers and libraries say about themselves once a program logs to its output.
NOISE = re.compile(r"PYFLINK_CYTHON_ENABLED|google\.cloud|Using Any for unsupported type")
EXAMPLES = (
    "word_count.py",
    "process_json_data.py",
    "event_time_timer.py",
    "state_access.py",
    "basic_operations.py",
    "windowing/tumbling_time_window.py",
    "windowing/sliding_time_window.py",
    "windowing/session_with_gap_window.py",
    "windowing/session_with_dynamic_gap_window.py",
    "windowing/tumbling_count_window.py",
)


def main() -> int:
    arguments = _arguments()
    python = _pyflink(arguments.venv)
    programs = arguments.programs or [*_examples(python), *_own()]
    differing = 0
    for program in programs:
        theirs = _printed([str(python), str(program)], python.parent, {})
        command = [sys.executable, "-m", "penstock", "run", "--as-pyflink", str(program)]
        ours = _printed(command, None, {"PENSTOCK_EXECUTOR": arguments.executor})
        same = theirs == ours
        differing += not same
        verdict = "same  " if same else "DIFFER"
        print(f"{verdict} {sum(theirs.values()):4} lines  {program}", flush=True)
        for sign, lines in (("-", theirs - ours), ("+", ours - theirs)):
            for line in sorted(lines.elements()):
                print(f"       {sign} {line}")
    print(f"{len(programs) - differing} of {len(programs)} programs print the same")
    return 1 if differing else 0


def _own() -> list[Path]:
    """PyFlink does not send the modules beside a program, of which one of them consists."""
    return sorted(path for path in OWN.glob("*.py") if path.name != "all_programs.py")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--executor", choices=("local", "spark"), default="spark")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--venv", type=Path, default=home / f"penstock-pyflink-{VERSION}")
    return parser.parse_args()


def _pyflink(venv: Path) -> Path:
    """The Python that has PyFlink."""
    python = venv.absolute() / "bin" / "python"
    if not python.exists():
        print(f"Installing apache-flink {VERSION} into {venv} (minutes, and about 1 GB)")
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"]
        subprocess.run(install, check=True)
    return python


def _examples(python: Path) -> list[Path]:
    find = "import os, pyflink; print(os.path.dirname(pyflink.__file__))"
    found = subprocess.run([str(python), "-c", find], check=True, capture_output=True, text=True)
    directory = Path(found.stdout.strip()) / "examples" / "datastream"
    return [directory / name for name in EXAMPLES]


def _printed(command: list[str], first_in_path: Path | None, more: dict[str, str]) -> Counter[str]:
    """The lines that a program prints. PyFlink starts its workers by the name `python`."""
    path = [str(first_in_path)] if first_in_path else []
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
        "PYTHONPATH": "" if first_in_path else str(ROOT / "src"),
        **more,
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        return Counter([f"exit code {done.returncode}", *done.stderr.splitlines()[-5:]])
    lines = (line for line in done.stdout.splitlines() if not NOISE.search(line))
    return Counter(re.sub(r"^(.*:)?\d+> ", r"\1> ", line) for line in lines)


if __name__ == "__main__":
    sys.exit(main())
