from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from penstock.errors import LeaseHeldError
from penstock.storage import lease
from penstock.storage.lease import Lease, is_held

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
HOLDER = """
import sys, time
from penstock.storage.lease import Lease, is_held
lease = Lease.acquire(sys.argv[1], {"job": "word count"})
print("held", flush=True)
time.sleep(60)
"""


def test_one_at_a_time(tmp_path):
    directory = str(tmp_path / "job")
    first = Lease.acquire(directory)
    with pytest.raises(LeaseHeldError, match=f"process {os.getpid()} on"):
        Lease.acquire(directory)
    first.release()
    first.release()
    with (
        Lease.acquire(directory, {"job": "x" * 500}),
        pytest.raises(LeaseHeldError, match="xxx"),
    ):
        Lease.acquire(directory)
    # A shorter content leaves nothing of the longer one.
    with Lease.acquire(directory), pytest.raises(LeaseHeldError, match="since") as caught:
        Lease.acquire(directory)
    assert "xxx" not in str(caught.value)


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_directory_that_its_holder_renames_away_is_not_taken(tmp_path, monkeypatch, made_anew):
    """A job that ends does so with the lease held, while another is about to ask for it."""
    directory = tmp_path / "job"
    holder = Lease.acquire(str(directory))
    open_file = lease._open

    def open_and_lose(path: str) -> int:
        monkeypatch.undo()
        fd = open_file(path)
        directory.rename(tmp_path / "gone")
        holder.release()
        if made_anew:
            Lease.acquire(str(directory)).release()
        return fd

    monkeypatch.setattr(lease, "_open", open_and_lose)
    with Lease.acquire(str(directory)), pytest.raises(LeaseHeldError):
        Lease.acquire(str(directory))


def test_a_killed_holder_loses_it(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], env=ENV, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeldError, match=rf"process {holder.pid} on .*word count.* since 20"):
        Lease.acquire(str(tmp_path))
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    Lease.acquire(str(tmp_path)).release()


def test_children_do_not_keep_it(tmp_path):
    held = Lease.acquire(str(tmp_path))
    read, write = os.pipe()
    forked = os.fork()
    if forked == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    executed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    held.release()
    # Both children are alive, and hold nothing.
    Lease.acquire(str(tmp_path)).release()
    os.close(write)
    os.close(read)
    executed.communicate(b"\n")
    os.waitpid(forked, 0)


def test_a_damaged_file_does_not_matter(tmp_path):
    (tmp_path / "lease.lock").write_bytes(b"{garbage")
    with Lease.acquire(str(tmp_path)), pytest.raises(LeaseHeldError, match=f"{os.getpid()} on"):
        Lease.acquire(str(tmp_path))


def test_whether_a_directory_is_in_use_can_be_asked_without_touching_it(tmp_path):
    assert not is_held(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with Lease.acquire(str(tmp_path)):
        assert is_held(str(tmp_path))
    assert not is_held(str(tmp_path))
    Lease.acquire(str(tmp_path)).release()  # asking has left no lock
