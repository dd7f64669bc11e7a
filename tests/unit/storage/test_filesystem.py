from __future__ import annotations

import errno
import os
import threading

import pytest

from penstock.errors import CheckpointUnwritableError, InvalidArgumentError
from penstock.storage import filesystem
from penstock.storage.filesystem import LocalFileSystem, filesystem_for

fs = LocalFileSystem()


def test_write_makes_parents_and_replaces(tmp_path):
    path = str(tmp_path / "a" / "b" / "file")
    fs.write(path, b"one")
    fs.write(path, b"two")
    assert fs.read(path) == b"two"
    assert fs.list(str(tmp_path / "a" / "b")) == ["file"]


def test_create_exclusive_has_one_winner(tmp_path):
    path = str(tmp_path / "epochs" / "1.json")
    outcomes = []

    def create(content: bytes) -> None:
        try:
            fs.create_exclusive(path, content)
            outcomes.append(content)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=create, args=(b"%d" % i * 1000,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert fs.read(path) == outcomes[0]
    assert fs.list(os.path.dirname(path)) == ["1.json"]


def test_create_exclusive_when_the_answer_of_its_own_link_was_lost(tmp_path, monkeypatch):
    link = os.link

    def link_twice(source, target):
        link(source, target)
        link(source, target)

    path = str(tmp_path / "1.json")
    with monkeypatch.context() as patched:
        patched.setattr(filesystem.os, "link", link_twice)
        fs.create_exclusive(path, b"one")
        with pytest.raises(FileExistsError):
            fs.create_exclusive(path, b"two")
    assert fs.read(path) == b"one"
    assert fs.list(str(tmp_path)) == ["1.json"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_create_exclusive_without_hard_links(tmp_path, monkeypatch, code):
    def no_links(source, target):
        raise OSError(code, "no links here")

    monkeypatch.setattr(filesystem.os, "link", no_links)
    path = str(tmp_path / "1.json")
    fs.create_exclusive(path, b"one")
    with pytest.raises(FileExistsError):
        fs.create_exclusive(path, b"two")
    assert fs.read(path) == b"one"
    assert fs.list(str(tmp_path)) == ["1.json"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("method", ["write", "create_exclusive"])
def test_a_directory_that_refuses_is_named(tmp_path, monkeypatch, code, method):
    def refuse(fd):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(filesystem.os, "fsync", refuse)
    path = str(tmp_path / "file")
    with pytest.raises(CheckpointUnwritableError, match=f"cannot write checkpoint at {path}"):
        getattr(fs, method)(path, b"data")
    assert fs.list(str(tmp_path)) == []


def test_missing_things(tmp_path):
    path = str(tmp_path / "none")
    fs.delete(path)
    fs.delete_tree(path)
    assert (fs.exists(path), fs.list(path)) == (False, [])
    with pytest.raises(FileNotFoundError):
        fs.read(path)


def test_deleting(tmp_path):
    fs.write(str(tmp_path / "d" / "x"), b"")
    fs.write(str(tmp_path / "d" / "y"), b"")
    fs.delete(str(tmp_path / "d" / "x"))
    assert fs.list(str(tmp_path / "d")) == ["y"]
    fs.delete_tree(str(tmp_path / "d"))
    assert fs.list(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/jobs", "/data/jobs"),
        ("file:///data/jobs", "/data/jobs"),
        ("file:/data/jobs", "/data/jobs"),
        ("file://localhost/data/my%20jobs", "/data/my jobs"),
        ("jobs", os.path.abspath("jobs")),
        ("/odd:name", "/odd:name"),
    ],
)
def test_local_uris(uri, path):
    assert filesystem_for(uri)[1] == path


@pytest.mark.parametrize("uri", ["s3://bucket/x", "hdfs://host/x", "file://data/x", ""])
def test_other_uris_are_refused_with_advice(uri):
    with pytest.raises(InvalidArgumentError, match="path"):
        filesystem_for(uri)
