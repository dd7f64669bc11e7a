"""The process that rewrites state files: its answers are told from whatever else it prints."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.driver.image_process import ImageProcess
from penstock.storage.compaction import Compaction
from penstock.storage.entries import Entry
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.table_file import write_table_file

_CHATTY = """
import sys
if "penstock.storage.images" in sys.orig_argv:
    print("loaded")
    print('{"files": []}')
    print("[1]", flush=True)
"""


def test_what_else_is_printed_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(_CHATTY)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = [Entry(0, "op", "s", b"1", b"", b"", b"v")]
    segment = write_table_file(LocalFileSystem(), str(tmp_path), "state/seg", rows)

    def order(name: str) -> dict[str, Any]:
        compaction = Compaction("image", (segment,), part_bytes=1000).to_json()
        return {"root": str(tmp_path), "compaction": compaction, "out_dir": "state", "name": name}

    images = ImageProcess(threading.Event())
    try:
        for name in ("first", "second"):
            answer = images.ask(order(name))
            assert answer is not None
            (file,) = answer["files"]
            assert name in file["path"]
        (tmp_path / "state" / "seg").unlink()
        with pytest.raises(ChildProcessError, match=r"CheckpointCorruptError: .*seg"):
            images.ask(order("third"))
    finally:
        images.end()
