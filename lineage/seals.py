"""Checksums beside the files of an answer, so that damage is found and named.

``.NAME.crc32`` holds the CRC-32 of the file NAME beside it, in hexadecimal, and its size in bytes.
Of a file in a folder ``traces`` it stands beside that folder, as ``.traces-NAME.crc32``: traces
alone are in there. A file without one is read as it is: users copy and write such files too.
"""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path

from bettong.lineage.errors import UsageError

TRACES = "traces"


def seal_of(path: Path) -> Path:
    """Where the checksum of a file stands."""
    if path.parent.name == TRACES:
        return path.parent.with_name(f".{TRACES}-{path.name}.crc32")
    return path.with_name(f".{path.name}.crc32")


def unseal(path: Path) -> None:
    """Forget the checksum of a file that is about to be changed or moved."""
    with contextlib.suppress(FileNotFoundError):
        seal_of(path).unlink()


def seal(path: Path, content: bytes | None = None) -> None:
    """Keep the checksum of a file that has been written; its content is read where not given."""
    checked = path.read_bytes() if content is None else content
    seal_of(path).write_bytes(_line(checked))


def write_sealed(path: Path, text: str) -> None:
    """Write a file with its checksum. One that a kill has left unfinished has none."""
    unseal(path)
    content = text.encode()
    path.write_bytes(content)
    seal(path, content)


def check(path: Path) -> None:
    """Raises UsageError when a file is not what the checksum beside it says; OSError."""
    seal_file = seal_of(path)
    try:
        told = seal_file.read_bytes()
    except OSError:
        return
    if told != _line(path.read_bytes()):
        raise UsageError(
            f"{path} is damaged, or was changed after it was written: its checksum in "
            f"{seal_file.name} is another; make it again, or remove {seal_file} if you changed it"
        )


def _line(content: bytes) -> bytes:
    return b"%08x %d\n" % (zlib.crc32(content), len(content))
