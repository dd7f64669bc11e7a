"""Paths as users write them: plain, or as ``file://`` URIs."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from penstock.errors import InvalidArgumentError

__all__ = ["local_path"]


def local_path(uri: str, what: str) -> str:
    """The absolute path on this machine; `what` names its use in errors."""
    if not isinstance(uri, str) or not uri:
        raise InvalidArgumentError.of(what, "a path or a file:// URI", uri)
    parts = urlsplit(uri)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise InvalidArgumentError(
                f"{uri!r} names the host {parts.netloc!r}; write file:///path, with three slashes"
            )
        return os.path.abspath(unquote(parts.path))
    if "://" in uri:
        raise InvalidArgumentError(
            f"{uri!r}: the scheme {parts.scheme}:// is not supported for a {what} yet; "
            "use a plain path or file:///path that all machines of the cluster mount "
            "(NFS, a Kubernetes volume, or a FUSE mount of the object store)"
        )
    return os.path.abspath(uri)
