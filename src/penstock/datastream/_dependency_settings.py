"""What a job needs beside its program: Python code, packages, archives, jars.

Kept in the environment's configuration under Flink's keys, so that either way is as good.
"""

from __future__ import annotations

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.local_paths import local_path
from penstock.driver.dependencies import (
    add_item,
    checked_archive,
    checked_cached_file,
    checked_file,
    checked_jar,
    checked_requirements,
)
from penstock.driver.import_bundle import make_importable
from penstock.errors import InvalidArgumentError


class DependencySettings:
    """A part of `StreamExecutionEnvironment`."""

    _configuration: Configuration

    def add_python_file(self, file_path: str) -> None:
        """A Python file, a directory of modules, or a zip file, to import from.

        The program can import from it, too, from now on.
        """
        file = checked_file(file_path)
        add_item(self._configuration, options.PYTHON_FILES, file)
        make_importable([file])

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive, which functions find unpacked in their working directory.

        There it is the directory `target_dir`, by default called like the file.
        """
        archive = checked_archive(archive_path, target_dir)
        item = f"{archive.path}#{archive.target}"
        add_item(self._configuration, options.PYTHON_ARCHIVES, item)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Packages to import, installed when the job starts; from the directory, if one is given.

        They are installed on this machine and sent to the workers, which must be like it.
        """
        found = checked_requirements(requirements_file_path, requirements_cache_dir)
        item = found.path if found.cache is None else f"{found.path}#{found.cache}"
        self._configuration.set(options.PYTHON_REQUIREMENTS, item)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs functions: a path on the workers, or one inside an archive."""
        if not isinstance(python_exec, str) or not python_exec:
            raise InvalidArgumentError.of("python_exec", "the path of a Python", python_exec)
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """A file or directory of which functions find a copy where they run.

        Its path there: ``runtime_context.get_distributed_cache().get_file(name)``.
        """
        file = checked_cached_file(file_path, name, executable)
        add_item(self._configuration, options.CACHED_FILES, file.to_text())

    def add_jars(self, *jars_path: str) -> None:
        """Jars for Spark: its own connectors, or functions for the JVM."""
        for jar in jars_path:
            add_item(self._configuration, options.JARS, checked_jar(jar))

    def add_classpaths(self, *classpaths: str) -> None:
        """Jars and directories that every machine has; Spark must not have been started yet."""
        for path in classpaths:
            add_item(self._configuration, options.CLASS_PATHS, local_path(path, "class path"))
