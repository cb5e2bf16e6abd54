"""All code that a target's runs are made of. A search that was interrupted goes on only with the
same: what other code has survived says nothing of this."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from importlib import metadata

from bettong.harness.queries.sink.loading import file_of
from bettong.lineage.errors import UsageError
from bettong.lineage.user_code import files_in_use


def code_of(target: str) -> str:
    """Another digest where the target's file is another one, or any that stands beside it and may
    be imported while it runs, another module of the user's that is in use, or a package that is
    installed. Raises UsageError.
    """
    digest = blake2b(digest_size=8)
    file = file_of(target)
    beside = [] if file is None else [file, *file.parent.glob("*.py")]
    for path in sorted({*beside, *files_in_use()}):
        try:
            content = path.read_bytes()
        except OSError as e:
            if path == file:
                raise UsageError(f"{path}: cannot be read: {e.strerror}") from e
            continue  # it has gone since it was loaded
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    for record in sorted(_installed()):
        digest.update(f"{len(record)}\n{record}".encode())
    return digest.hexdigest()


def _installed() -> Iterator[str]:
    """What each package consists of, with the digests of its files: one that is installed again
    may be another one of the same version."""
    for package in metadata.distributions():
        yield package.read_text("RECORD") or f"{package.name} {package.version}"
