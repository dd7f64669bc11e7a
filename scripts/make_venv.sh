#!/usr/bin/env bash
# Make a virtual environment with Penstock and its tools. Usage: make_venv.sh DIRECTORY
set -euo pipefail

venv=$1
cd "$(dirname "$0")/.."

is_new_enough() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.12 python3.13 python3.11 python3.10 python3 python; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && is_new_enough "$candidate"
        then
            echo "$candidate"
            return
        fi
    done
    echo "Penstock needs Python 3.10 or later with the venv module, and found none." >&2
    echo "Install it (on Debian or Ubuntu: apt-get install python3 python3-venv), or name one:" >&2
    echo "  make setup PYTHON=/path/to/python3" >&2
    return 1
}

if ! is_new_enough "$venv/bin/python"; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi
echo "Installing Penstock and its tools into $venv (minutes the first time; Spark is large)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
