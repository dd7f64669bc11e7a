"""Files that functions find by name where they run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, PenstockError, UserFunctionError

MakeEnv = Callable[..., StreamExecutionEnvironment]


class Read(MapFunction):
    """What the files say, and where they are."""

    def open(self, runtime_context: RuntimeContext) -> None:
        cache = runtime_context.get_distributed_cache()
        self.rates = cache.get_file("rates")
        self.script = cache.get_file("script")
        self.folder = cache.get_file("folder")

    def map(self, value: Any) -> Any:
        told = subprocess.run([self.script], capture_output=True, text=True, check=True).stdout
        below = Path(self.folder, "below", "deep.txt").read_text()
        return value, Path(self.rates).read_text(), told, below, self.rates


def test_files_directories_and_scripts(make_env: MakeEnv, executor: str, tmp_path: Path) -> None:
    """Two of them have the same name on disk; one is named in the settings."""
    (tmp_path / "one").mkdir()
    rates = tmp_path / "one" / "data"
    rates.write_text("1.5")
    script = tmp_path / "data"
    script.write_text("#!/bin/sh\necho done\n")
    script.chmod(0o755)
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "deep.txt").write_text("deep")
    for rate in ("1.5", "2.5"):
        rates.write_text(rate)
        env = make_env({"pipeline.cached-files": f"name:rates,path:'file://{rates}'"})
        env.register_cached_file(str(script), "script", True)
        env.register_cached_file(str(tmp_path / "folder"), "folder")
        found = list(env.from_collection([1, 2]).map(Read()).execute_and_collect())
        assert sorted(row[:4] for row in found) == [
            (1, rate, "done\n", "deep"),
            (2, rate, "done\n", "deep"),
        ]
        own = {row[4] == str(rates) for row in found}
        assert own == {executor == "local"}, "on Spark it must be the copy that was sent"


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_a_name_that_nobody_registered(make_env: MakeEnv, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    env = make_env()
    env.register_cached_file(str(tmp_path / "f"), "there")
    with pytest.raises(PenstockError, match=r"no cached file 'rates', but 'there'; call env") as e:
        list(env.from_collection([1]).map(Read()).execute_and_collect())
    assert isinstance(e.value, InvalidArgumentError | UserFunctionError)


@pytest.mark.parametrize("executor", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone", "a"), "cached file .*gone does not exist on this machine"),
        (("f", "a,b"), "name of a cached file must be a text without comma"),
        (("f", ""), "name of a cached file must be"),
        (("f", "a", True), "is not executable; chmod"),
    ],
)
def test_what_cannot_be_registered(
    make_env: MakeEnv, tmp_path: Path, arguments: Any, message: str
) -> None:
    (tmp_path / "f").write_text("")
    path, *others = arguments
    with pytest.raises(InvalidArgumentError, match=message):
        make_env().register_cached_file(str(tmp_path / path), *others)


@pytest.mark.parametrize("executor", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("/f", "pipeline.cached-files must be a list like name:n,path:p"),
        ("name:a", "pipeline.cached-files must be a list like"),
        ("name:a,path:{0}/f,more:1", "pipeline.cached-files must be a list like"),
        ("name:a,path:{0}/f;name:a,path:{0}/g", "/f and .*/g have the same name, 'a'"),
    ],
)
def test_settings_that_say_nothing(
    make_env: MakeEnv, tmp_path: Path, setting: str, message: str
) -> None:
    (tmp_path / "f").write_text("")
    (tmp_path / "g").write_text("")
    env = make_env({"pipeline.cached-files": setting.format(os.fspath(tmp_path))})
    with pytest.raises(InvalidArgumentError, match=message):
        list(env.from_collection([1]).execute_and_collect())
