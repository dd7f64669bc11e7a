from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from penstock.errors import LeaseHeldError
from penstock.storage.lease import Lease

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
HOLDER = """
import sys, time
from penstock.storage.lease import Lease
lease = Lease.acquire(sys.argv[1], {"job": "word count"})
print(lease.term, flush=True)
time.sleep(60)
"""


def test_one_at_a_time_and_terms_grow(tmp_path):
    directory = str(tmp_path / "job")
    first = Lease.acquire(directory)
    with pytest.raises(LeaseHeldError, match=f"process {os.getpid()} on"):
        Lease.acquire(directory)
    first.release()
    first.release()
    with Lease.acquire(directory) as second:
        assert (first.term, second.term) == (1, 2)
    with Lease.acquire(directory, {"note": "x" * 500}) as third:
        assert third.term == 3
    with Lease.acquire(directory) as fourth:
        assert fourth.term == 4


def test_a_killed_holder_loses_it(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], env=ENV, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "1\n"
    with pytest.raises(LeaseHeldError, match=rf"process {holder.pid} on .*word count.* since 20"):
        Lease.acquire(str(tmp_path))
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with Lease.acquire(str(tmp_path)) as lease:
        assert lease.term == 2


def test_children_do_not_keep_it(tmp_path):
    lease = Lease.acquire(str(tmp_path))
    read, write = os.pipe()
    forked = os.fork()
    if forked == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    executed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lease.release()
    # Both children are alive, and hold nothing.
    Lease.acquire(str(tmp_path)).release()
    os.close(write)
    os.close(read)
    executed.communicate(b"\n")
    os.waitpid(forked, 0)


def test_a_damaged_file_does_not_matter(tmp_path):
    (tmp_path / "lease.lock").write_bytes(b"{garbage")
    with Lease.acquire(str(tmp_path)) as lease:
        assert lease.term == 1
