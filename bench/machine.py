"""What the numbers were measured on. Says nothing that identifies the machine."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyspark

import penstock


def describe() -> dict[str, str]:
    return {
        "date": dt.date.today().isoformat(),
        "cores": str(len(os.sched_getaffinity(0))),
        "cpu": _cpu(),
        "memory": _memory(),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "java": _java(),
        "pyarrow": pa.__version__,
        "penstock": penstock.__version__,
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu() -> str:
    return _first(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.machine()


def _memory() -> str:
    kilobytes = _first(r"MemTotal:\s*(\d+)", "/proc/meminfo")
    return f"{int(kilobytes) / (1 << 20):.0f} GiB" if kilobytes else "unknown"


def _first(pattern: str, path: str) -> str | None:
    try:
        found = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return found[1].strip() if found else None


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return found[1] if found else "unknown"
