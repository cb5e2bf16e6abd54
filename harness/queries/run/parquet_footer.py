"""What a Parquet file says of itself, in one order.

The footer lists the encodings of each column, as a set of Java's that every JVM has in another
order: files with the same rows differ in that alone, and no reader heeds it.
"""

from __future__ import annotations

import re

_MAGIC = b"PAR1"
_LENGTH = 4
"""Bytes before the magic at the end, in which the footer's length is."""
# Thrift's compact protocol: the type of a column, a list of small numbers (its encodings), and
# then a list of strings (its path).
_ENCODINGS = re.compile(
    rb"(?<=\x15[\x00-\x0e]\x19)[\x25\x35\x45\x55][\x00-\x12]{2,5}(?=\x19[\x18-\xe8])"
)


def in_one_order(content: bytes) -> bytes:
    """The content of a file; of a whole Parquet file with the encodings of each column sorted."""
    if not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
        return content
    end = len(content) - len(_MAGIC) - _LENGTH
    begin = end - int.from_bytes(content[end : end + _LENGTH], "little")
    if begin < len(_MAGIC):
        return content
    footer = _ENCODINGS.sub(_sorted, content[begin:end])
    return content[:begin] + footer + content[end:]


def _sorted(found: re.Match[bytes]) -> bytes:
    size, *encodings = found[0]
    if size >> 4 != len(encodings):
        return found[0]
    return bytes((size, *sorted(encodings)))
