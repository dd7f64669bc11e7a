"""Which job a program is: distinct names give distinct ids, which all are fit for a directory."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.driver.job_id import job_id_of
from penstock.errors import InvalidArgumentError
from penstock.storage.checkpoint_layout import CheckpointLayout


def of(name: str | None, **settings: str) -> str:
    keys = {"job_id": "penstock.job-id", "pipeline": "pipeline.name"}
    return job_id_of(Configuration.from_dict({keys[k]: v for k, v in settings.items()}), name)


def test_a_plain_name_is_the_id():
    assert of("word-count_2.1") == "word-count_2.1"
    assert of(None, pipeline="orders") == "orders"
    assert of("given", pipeline="orders") == "given"
    assert of("given", job_id="chosen") == "chosen"


def test_names_that_are_not_plain_stay_apart():
    names = ["a b", "a/b", "a:b", "a-b", "заказы", "注文", "a" * 300, "a" * 301, ".a", "a."]
    ids = [of(name) for name in names]
    assert len(set(ids)) == len(names)
    assert ids[0].startswith("a-b-")
    assert ids[3] == "a-b"
    assert ids[4].startswith("job-")


@given(st.text(min_size=1))
def test_every_id_is_fit_for_a_directory(name):
    job_id = of(name)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,110}", job_id)
    assert CheckpointLayout.of_job("/dir", job_id).root == f"/dir/{job_id}"


def test_a_job_without_a_name_is_known_by_its_program(monkeypatch, tmp_path):
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", str(tmp_path / "one.py"), raising=False)
    one = of(None)
    assert one.startswith("Penstock-Job-")
    assert of("") == of(None) == one
    monkeypatch.setattr(main, "__file__", str(tmp_path / "two.py"))
    two = of(None)
    monkeypatch.delattr(main, "__file__")
    monkeypatch.chdir(tmp_path)
    in_a_notebook = of(None)
    assert len({one, two, in_a_notebook, of("Penstock Job")}) == 4


def test_a_chosen_id_that_is_no_file_name_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"penstock\.job-id must be at most 200"):
        of("x", job_id="j" * 201)
