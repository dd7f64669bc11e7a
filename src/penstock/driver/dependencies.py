"""What a job needs beside its program, as the settings name it; checked, not shipped."""

from __future__ import annotations

import os
import tarfile
import zipfile
from dataclasses import dataclass

from penstock import options
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.local_paths import local_path
from penstock.errors import InvalidArgumentError

_ZIPS = (".zip", ".egg", ".whl")
_TARS = (".tar", ".tar.gz", ".tgz")
_JARS_IN_A_LIST = ";"
_FILES_IN_A_LIST = ","
_BESIDE_PATH = "#"
_CACHED_FORM = "a list like name:n,path:p;name:m,path:q,executable:true"


@dataclass(frozen=True)
class Archive:
    """A file to be unpacked in the workers' working directory, as `target`."""

    path: str
    target: str


@dataclass(frozen=True)
class Requirements:
    """A requirements file, and a directory of packages if none are to be downloaded."""

    path: str
    cache: str | None


@dataclass(frozen=True)
class CachedFile:
    """A file or directory that functions ask for by name."""

    name: str
    path: str
    executable: bool = False

    def to_text(self) -> str:
        also = ",executable:true" if self.executable else ""
        return f"name:{self.name},path:{self.path}{also}"


@dataclass(frozen=True)
class Dependencies:
    """Everything that is to be had in workers."""

    files: tuple[str, ...] = ()
    archives: tuple[Archive, ...] = ()
    requirements: Requirements | None = None
    executable: str | None = None
    cached: tuple[CachedFile, ...] = ()

    @classmethod
    def of(cls, configuration: Configuration) -> Dependencies:
        """Raises for what is not there, or not what it must be."""
        archives = [
            checked_archive(*_pair(a)) for a in _items(configuration, options.PYTHON_ARCHIVES)
        ]
        _check_targets(archives)
        requirements = configuration.get(options.PYTHON_REQUIREMENTS)
        return cls(
            tuple(checked_file(file) for file in _items(configuration, options.PYTHON_FILES)),
            tuple(archives),
            None if requirements is None else checked_requirements(*_pair(requirements)),
            configuration.get(options.PYTHON_EXECUTABLE),
            cached_files(configuration),
        )


def add_item(configuration: Configuration, option: ConfigOption[str | None], item: str) -> None:
    """One more in the list of an option."""
    items = [*_items(configuration, option), item]
    configuration.set(option, _separator(option).join(dict.fromkeys(items)))


def jars(configuration: Configuration) -> list[str]:
    return [checked_jar(jar) for jar in _items(configuration, options.JARS)]


def class_paths(configuration: Configuration) -> list[str]:
    """Paths that all machines must have."""
    return [local_path(path, "class path") for path in _items(configuration, options.CLASS_PATHS)]


def cached_files(configuration: Configuration) -> tuple[CachedFile, ...]:
    found: dict[str, CachedFile] = {}
    for item in _items(configuration, options.CACHED_FILES):
        parts = dict(_key_and_value(part, item) for part in item.split(_FILES_IN_A_LIST))
        if not {"name", "path"} <= parts.keys() <= {"name", "path", "executable"}:
            raise InvalidArgumentError.of(options.CACHED_FILES.key, _CACHED_FORM, item)
        executable = parts.get("executable", "false").lower() == "true"
        file = checked_cached_file(parts["path"], parts["name"], executable)
        if found.setdefault(file.name, file) != file:
            raise InvalidArgumentError(
                f"cached files {found[file.name].path} and {file.path} have the same name, "
                f"{file.name!r}; give each its own"
            )
    return tuple(found.values())


def checked_cached_file(path: str, name: str, executable: bool) -> CachedFile:
    """What functions get is a copy; only on this machine it is the file itself."""
    found = _existing(path, "cached file")
    if not isinstance(name, str) or not name or not set(name).isdisjoint(",:;"):
        raise InvalidArgumentError.of(
            "name of a cached file", "a text without comma, colon, semicolon", name
        )
    if executable and not os.access(found, os.X_OK):
        raise InvalidArgumentError(f"cached file {path} is not executable; chmod +x it")
    return CachedFile(name, found, bool(executable))


def _key_and_value(part: str, item: str) -> tuple[str, str]:
    key, colon, value = part.strip().partition(":")
    if not colon:
        raise InvalidArgumentError.of(options.CACHED_FILES.key, _CACHED_FORM, item)
    return key, value.strip("'\"` ")


def checked_file(path: str) -> str:
    """The path of a Python file, a directory of such, or a zip file of such."""
    found = _existing(path, "Python file")
    if os.path.isdir(found) or found.endswith(".py"):
        return found
    if not found.endswith(_ZIPS):
        raise InvalidArgumentError(
            f"Python file {path} is neither a .py file nor a directory nor a zip file "
            f"({', '.join(_ZIPS)}); use add_python_archive for what is to be unpacked"
        )
    if not zipfile.is_zipfile(found):
        raise InvalidArgumentError(f"Python file {path} is not a zip file, though it is called one")
    return found


def checked_archive(path: str, target: str | None) -> Archive:
    """An archive to be unpacked under a name, by default its own."""
    found = _existing(path, "archive")
    if not found.endswith((".zip", ".jar", *_TARS)) or os.path.isdir(found):
        raise InvalidArgumentError(
            f"archive {path} must be a file called .zip, .jar, {', '.join(_TARS)}; "
            "for a directory of modules, use add_python_file"
        )
    whole = tarfile.is_tarfile if found.endswith(_TARS) else zipfile.is_zipfile
    if not whole(found):
        raise InvalidArgumentError(
            f"archive {path} cannot be read; it is not what its name says, or damaged"
        )
    name = target if target is not None else os.path.basename(found)
    normal = os.path.normpath(name)
    if not name or os.path.isabs(name) or normal.startswith("..") or normal == ".":
        raise InvalidArgumentError.of(
            "target_dir", "the name of a directory below the working directory", target
        )
    return Archive(found, normal)


def checked_requirements(path: str, cache: str | None) -> Requirements:
    found = _existing(path, "requirements file")
    if not os.path.isfile(found):
        raise InvalidArgumentError.of("a requirements file", "a file", path)
    if cache is None:
        return Requirements(found, None)
    directory = _existing(cache, "requirements cache")
    if not os.path.isdir(directory):
        raise InvalidArgumentError.of("requirements_cache_dir", "a directory of packages", cache)
    return Requirements(found, directory)


def checked_jar(jar: str) -> str:
    """The URI of a jar. One that is not on this machine is left to Spark."""
    if not isinstance(jar, str) or not jar:
        raise InvalidArgumentError.of("a jar", "a path or URI", jar)
    if "://" in jar and not jar.startswith("file:"):
        return jar
    found = _existing(jar, "jar")
    if not zipfile.is_zipfile(found):
        raise InvalidArgumentError(f"jar {jar} cannot be read; it is no jar, or damaged")
    return f"file://{found}"


def _existing(path: str, what: str) -> str:
    found = local_path(path, what)
    if not os.path.exists(found):
        raise InvalidArgumentError(f"{what} {path} does not exist on this machine ({found})")
    for separator in (_FILES_IN_A_LIST, _JARS_IN_A_LIST, _BESIDE_PATH):
        if separator in found:
            raise InvalidArgumentError(
                f"{what} {found} has {separator!r} in its path, which settings use between paths; "
                "rename it"
            )
    return found


def _check_targets(archives: list[Archive]) -> None:
    by_target: dict[str, str] = {}
    for archive in archives:
        other = by_target.setdefault(archive.target, archive.path)
        if other != archive.path:
            raise InvalidArgumentError(
                f"archives {other} and {archive.path} have the same target directory, "
                f"{archive.target!r}; give each its own"
            )


def _items(configuration: Configuration, option: ConfigOption[str | None]) -> list[str]:
    value = configuration.get(option) or ""
    return [item.strip() for item in value.split(_separator(option)) if item.strip()]


def _separator(option: ConfigOption[str | None]) -> str:
    return _JARS_IN_A_LIST if option.key.startswith("pipeline.") else _FILES_IN_A_LIST


def _pair(text: str) -> tuple[str, str | None]:
    first, _, second = text.partition(_BESIDE_PATH)
    return first, second or None
