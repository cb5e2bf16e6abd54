"""Small files that hold one text and its checksum, so that damage is found and named.

One line, then a line with the CRC-32 of the first in hexadecimal, as manifests have it.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from bettong.engine.storage.log import DamageError


def sealed(value: Any) -> bytes:
    """A JSON value as the content of such a file."""
    line = json.dumps(value, separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (line, zlib.crc32(line))


def unsealed(content: bytes, name: str, remedy: str) -> Any:
    """The value in a file's content.

    Args:
        name: of the file, for the error.
        remedy: what its owner should do when it is damaged.

    Raises DamageError.
    """
    line, _, checksum = content.partition(b"\n")
    if checksum != b"%08x\n" % zlib.crc32(line):
        raise DamageError(f"{name} is damaged: its checksum is wrong; {remedy}")
    try:
        return json.loads(line)
    except ValueError as e:  # the checksum is right, so that nobody but us has written it
        raise DamageError(f"{name} is not what it should be: {e}; {remedy}") from e
