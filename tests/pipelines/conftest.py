"""Every pipeline test runs on both executors: `env` comes once with each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from penstock.common import Configuration
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent / "shared"))
from gated import SAVEPOINTS, StartJob, counts, open_gate

# Classes that workers must find by name, as they find those of an installed package.
_SHARED = Path(__file__).parent / "shared"

# Hundreds of short queries: an optimizing compiler takes a third of the processor's time, and none
# of them lives long enough to be the quicker for it.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_SUBMIT_ARGS = (
    "--conf spark.ui.enabled=false --conf spark.driver.memory=2g "
    f"--conf 'spark.driver.defaultJavaOptions={_QUICK_JVM}' pyspark-shell"
)

MakeEnv = Callable[..., StreamExecutionEnvironment]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One session for all tests, made the way a job makes it."""
    from penstock.driver.spark_session import spark_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", _SUBMIT_ARGS)
        path = [str(_SHARED), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        session = spark_session("local[2]", "penstock tests")
        yield session
        session.stop()


@pytest.fixture(scope="session", params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def executor(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture
def make_env(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeEnv:
    """Makes environments with parallelism 2, and with the given settings."""
    monkeypatch.delenv("PENSTOCK_EXECUTOR", raising=False)

    def make(settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
        configuration = Configuration()
        defaults = {
            "penstock.executor": executor,
            "parallelism.default": "2",
            "state.backend.local-dir": str(tmp_path / "stores"),
        }
        for key, value in {**defaults, **(settings or {})}.items():
            configuration.set_string(key, value)
        return StreamExecutionEnvironment.get_execution_environment(configuration)

    return make


@pytest.fixture
def env(make_env: MakeEnv) -> StreamExecutionEnvironment:
    return make_env()


@pytest.fixture
def restartable_env(make_env: MakeEnv, tmp_path: Path) -> MakeEnv:
    """Makes environments of one job: its checkpoints stay, and it fails at the first error."""

    def make(settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
        defaults = {
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "penstock.job-id": "job",
            "restart-strategy.type": "none",
            "penstock.source.max-records-per-epoch": "10",
        }
        return make_env({**defaults, **(settings or {})})

    return make


@pytest.fixture
def job(restartable_env: MakeEnv, tmp_path: Path) -> StartJob:
    """Starts the counting job of `gated`; the gate says how far it may read."""

    def start(
        gate: int = 10,
        settings: dict[str, str] | None = None,
        function: Any = None,
        out: str = "out",
    ) -> Any:
        open_gate(tmp_path / "gate", gate)
        env = restartable_env({SAVEPOINTS: str(tmp_path / "savepoints"), **(settings or {})})
        counts(env, tmp_path / "gate", tmp_path / out, function)
        return env.execute_async("counting")

    return start


@pytest.fixture
def collect_until_error() -> Callable[[DataStream], tuple[list[Any], PenstockError]]:
    """Runs a job that must fail: what it gave until then, and the error."""

    def collect(stream: DataStream) -> tuple[list[Any], PenstockError]:
        values: list[Any] = []
        with pytest.raises(PenstockError) as caught:
            for value in stream.execute_and_collect():
                values.append(value)
        return values, caught.value

    return collect


@pytest.fixture(autouse=True, scope="module")
def functions_travel_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Test modules cannot be imported on workers, unlike a user's script or package."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)
