"""The image of the nodes: almost empty, with the machine's own programs bound into it.

No registry is needed, and nodes run the very Python, Java, Spark and Bettong that the harness runs.
The image holds the folders that are a container's own and the links at the file system's root
(``/bin`` → ``usr/bin``); it is made by an import of a few kilobytes and kept by their hash. What
programs need is bound read-only at its own path.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bettong.harness.spark import jar
from bettong.harness.spark.cache import cache_directory

REPOSITORY = "bettong-node"
_OWN = {"dev": 0o755, "proc": 0o555, "run": 0o755, "sys": 0o555, "tmp": 0o1777, "var": 0o755}
_SYSTEM = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr")
_ROOMS = ("engine", "harness", "lineage", "reports", "scenarios")


def ensure_image(client: Any) -> str:
    """The id of the image, made when the engine has none of this content."""
    content = _archive()
    tag = hashlib.sha256(content).hexdigest()[:16]
    found = client.images.list(f"{REPOSITORY}:{tag}")
    if not found:
        client.api.import_image_from_data(content, repository=REPOSITORY, tag=tag)
        found = client.images.list(f"{REPOSITORY}:{tag}")
    return str(found[0].id)


def program_folders() -> list[Path]:
    """The folders of this machine that a node needs to run our programs."""
    jar.hooks()  # which no node could make, as it may only read
    folders = [
        *(Path("/", name) for name in _SYSTEM if not Path("/", name).is_symlink()),
        *(Path(prefix) for prefix in (sys.prefix, sys.base_prefix)),
        *(Path(entry or ".") for entry in sys.path),
        *(Path(*importlib.import_module(f"bettong.{room}").__path__) for room in _ROOMS),
        Path(jar.java()).resolve().parents[1],
        jar.spark_home(),
        cache_directory(),
        Path.cwd(),
    ]
    found = dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir())
    return sorted(folder for folder in found if folder != Path("/"))


def _archive() -> bytes:
    """A tar of the image's root, the same bytes for the same machine."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for entry in _entries():
            archive.addfile(entry)
    return content.getvalue()


def _entries() -> Iterator[tarfile.TarInfo]:
    for name, mode in {**_OWN, "var/tmp": 0o1777}.items():
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        yield entry
    for name in _SYSTEM:
        if Path("/", name).is_symlink():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, str(Path("/", name).readlink())
            yield entry
