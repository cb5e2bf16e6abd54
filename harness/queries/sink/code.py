"""All code that a target's runs are made of. A search that was interrupted goes on only with the
same: what other code has survived says nothing of this."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from bettong.harness.queries.sink.loading import file_of
from bettong.lineage.errors import UsageError
from bettong.lineage.user_code import files_in_use

_CODE = (".py", ".sql", ".lua", ".j2", ".avsc", ".proto", ".xml", ".properties", ".env")
_SETTINGS = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf")
_DATA = ".json"
"""Beside the target it is settings as a rule, in a folder of its own what runs read and write."""
_NOT_OWN = ("__pycache__", "site-packages", "dist-packages")


def code_of(target: str) -> str:
    """Another digest where the target's file is another one, or any that stands beside it, or in a
    folder there that such a file names, and may be imported or read while it runs, another module
    of the user's that is in use, a package that is installed, or what a variable of the environment
    has that any of these files names. Raises UsageError.
    """
    digest = blake2b(digest_size=8)
    file = file_of(target)
    beside = [] if file is None else [file, *_beside(file)]
    variables = {name: value for name, value in os.environ.items() if len(name) > 1}
    named: dict[str, str] = {}
    for path in sorted({*beside, *files_in_use()}):
        try:
            content = path.read_bytes()
        except OSError as e:
            if path == file:
                raise UsageError(f"{path}: cannot be read: {e.strerror}") from e
            continue  # it has gone since it was loaded
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
        named.update({x: y for x, y in variables.items() if os.fsencode(x) in content})
    digest.update(repr(sorted(named.items())).encode("utf-8", "surrogateescape"))
    for record in sorted(_installed()):
        digest.update(f"{len(record)}\n{record}".encode())
    return digest.hexdigest()


def _beside(file: Path) -> Iterator[Path]:
    """Code, and what code is told by: statements, templates, settings."""
    read = (*_CODE, *_SETTINGS)
    named = b""
    folders = []
    for path in file.parent.iterdir():
        if path.name.endswith(read) and path.is_file():
            yield path
            named += path.read_bytes() if path.suffix in _CODE else b""
        elif path.is_dir() and not path.name.startswith("."):
            folders.append(path)
    for folder in folders:
        if os.fsencode(folder.name) in named:
            yield from _below(folder)


def _below(folder: Path) -> Iterator[Path]:
    """The same of a folder, such as a package that a script imports: nobody else does so here."""
    read = (*_CODE, *(suffix for suffix in _SETTINGS if suffix != _DATA))
    for at, names, files in os.walk(folder):
        names[:] = [x for x in names if not x.startswith(".") and x not in _NOT_OWN]
        yield from (Path(at, name) for name in files if name.endswith(read))


def _installed() -> Iterator[str]:
    """What each package consists of, with the digests of its files: one that is installed again
    may be another one of the same version."""
    for package in metadata.distributions():
        yield package.read_text("RECORD") or f"{package.name} {package.version}"
