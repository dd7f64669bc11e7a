"""Sends what a job needs to Spark's workers, by Spark's own means."""

from __future__ import annotations

import os
import shutil
from weakref import WeakKeyDictionary

from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession
from xxhash import xxh3_64

from penstock.driver.dependencies import Archive, Dependencies
from penstock.driver.import_bundle import code_bundle, requirements_bundle
from penstock.driver.neighbours import neighbours
from penstock.errors import InvalidArgumentError, InvalidProgramError
from penstock.runtime.surroundings import Surroundings

_shipped: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def ship(session: SparkSession, dependencies: Dependencies) -> Surroundings:
    """Send all that workers have not got yet; how they find it."""
    context = session.sparkContext
    bundles = [code_bundle(neighbours(), dependencies.files)]
    if dependencies.requirements is not None:
        bundles.append(requirements_bundle(dependencies.requirements))
    imports = []
    for bundle in filter(None, bundles):
        _send(context, bundle.archive, bundle.name)
        imports += [
            os.path.join(bundle.name, part) if part else bundle.name for part in bundle.imports
        ]
    archives = [(_sent_name(archive), archive) for archive in dependencies.archives]
    for name, archive in archives:
        _send(context, archive.path, name)
    return Surroundings(tuple(imports), tuple((name, a.target) for name, a in archives))


def python_for(session: SparkSession, dependencies: Dependencies) -> str | None:
    """The command that starts a worker; None if none is set. It may lie in an archive."""
    command = dependencies.executable
    if command is None:
        return None
    master = str(session.sparkContext.master)
    local = master == "local" or master.startswith("local[")
    for archive in dependencies.archives:
        if command.startswith(archive.target + os.sep):
            inside = _sent_name(archive) + command[len(archive.target) :]
            command = os.path.join(SparkFiles.getRootDirectory(), inside) if local else inside
            break
    if local and shutil.which(command) is None:
        raise InvalidArgumentError(
            f"Python {dependencies.executable} cannot be executed; pass the path of an "
            "interpreter, or one below the target directory of an archive"
        )
    return command


def check_java(session: SparkSession, jars: list[str], class_paths: list[str]) -> None:
    """See that the session has them: it may have been there before they were asked for."""
    shipped = _shipped.setdefault(session.sparkContext, set())
    settings = session.sparkContext.getConf()
    started_with = settings.get("spark.jars", "").split(",")
    for jar in jars:
        if jar not in started_with and jar not in shipped:
            session.sql(f"ADD JAR '{jar}'")
            shipped.add(jar)
    on_path = settings.get("spark.driver.extraClassPath", "").split(os.pathsep)
    missing = [path for path in class_paths if path not in on_path]
    if missing:
        raise InvalidProgramError(
            f"class paths {missing} cannot be added, since Spark runs already; call "
            "add_classpaths before anything starts it, or use add_jars"
        )


def _sent_name(archive: Archive) -> str:
    """One that no other archive has, even if it has the same target in another job."""
    status = os.stat(archive.path)
    told = f"{archive.path}:{status.st_mtime_ns}:{status.st_size}"
    return f"penstock-{xxh3_64(told.encode()).hexdigest()}"


def _send(context: SparkContext, archive: str, name: str) -> None:
    shipped = _shipped.setdefault(context, set())
    if name not in shipped:
        context.addArchive(f"{archive}#{name}")
        shipped.add(name)
