"""The outer form of a frame: pure functions from and to bytes.

``magic "BT" | version u8 | kind u8 | body length u32 | crc32 u32 | body``, little endian. The
checksum covers everything but itself.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from bettong.engine.net.errors import FrameError

MAGIC = b"BT"
VERSION = 1
_START = struct.Struct("<2sBBI")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _START.size + _CHECKSUM.size

Buffer = bytes | bytearray | memoryview


class Header(NamedTuple):
    """A header that has been read: what follows and how to check it."""

    kind: int
    length: int
    checksum: int
    start: bytes


def encode(kind: int, body: Iterable[Buffer]) -> bytes:
    """One whole frame."""
    parts: list[Buffer] = list(body)
    start = _START.pack(MAGIC, VERSION, kind, sum(map(len, parts)))
    return b"".join((start, _CHECKSUM.pack(_checksum(start, *parts)), *parts))


def parse_header(header: bytes, limit: int) -> Header:
    """Read the first HEADER_BYTES of a frame whose body may have ``limit`` bytes at most.

    Raises FrameError when these are not the start of a frame that this side accepts.
    """
    magic, version, kind, length = _START.unpack_from(header)
    if magic != MAGIC:
        raise FrameError(f"not a frame of Bettong: it starts with {header[:8]!r}")
    if version != VERSION:
        raise FrameError(f"protocol version {version} is unknown; this side speaks {VERSION}")
    if length > limit:
        raise FrameError(f"a frame of {length} bytes is over the limit of {limit} bytes")
    (checksum,) = _CHECKSUM.unpack_from(header, _START.size)
    return Header(kind, length, checksum, header[: _START.size])


def check_body(header: Header, body: Buffer) -> None:
    """Raises FrameError when the body is not the one that the header was written for."""
    if len(body) != header.length or _checksum(header.start, body) != header.checksum:
        raise FrameError(f"the checksum of a frame of {header.length} bytes does not match")


def _checksum(*parts: Buffer) -> int:
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value
