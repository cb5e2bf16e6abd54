"""Message ids.

An input's id is ``stream/n``, n counted from 0 by the source. A step that gives one message for
one keeps the id; a step that gives many appends ``.k`` to it, k counted from 0 in the order given.
So word count's outputs for the message ``lines/17`` are ``lines/17.0``, ``lines/17.1``, … in the
order of its words. A merge of streams that come from the same source appends ``.i``, the place of
the stream in the merge, because both may hold the same id.

A message for every key meets many entities; what comes of each appends three numbers made of the
hash of its key, so that they are the same however keys are spread.

A state entity meets the messages of one micro-batch by number first, then by the stream's place
in the application, then by path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bettong.lineage.errors import BettongError

_ID = re.compile(r"([^/]+)/(0|[1-9][0-9]*)((?:\.(?:0|[1-9][0-9]*))*)\Z")
STREAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


VISIT_WIDTH = 3


def visits(keys: Iterable[tuple[int, bytes]]) -> list[tuple[tuple[int, int, int], bytes]]:
    """The keys that a message for every key meets, in the order in which it meets them, each with
    what it appends to the message's id there.

    Args:
        keys: hashes and canonical bytes of all keys that have an entity.

    Returns:
        Three numbers of 31 bits, of the hash and of the key's place among those of one hash, and
        the key.
    """
    found = []
    before, rank = -1, 0
    for hashed, key in sorted(keys):
        rank = rank + 1 if hashed == before else 0
        before = hashed
        path = hashed >> 33, (hashed >> 2) & 0x7FFFFFFF, (hashed & 3) << 29 | rank
        found.append((path, key))
    return found


class MessageIdError(BettongError):
    """Text that is no message id."""


class MessageId(NamedTuple):
    """``stream/number.path``; -1 in a path holds the place of a step that was not on the way, so
    that paths of different ways can be put in order, and is not written."""

    stream: str
    number: int
    path: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.stream}/{self.number}" + "".join(f".{k}" for k in self.path if k >= 0)


class StreamNames:
    """Names of streams by their codes in the columns of messages.

    The code of a source is its place in the application. Partition p of a source that has
    partitions is a stream of its own, ``NAME-p``, whose messages have numbers of their own.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources

    def __getitem__(self, code: int) -> str:
        partition, place = divmod(code, len(self._sources))
        return self._sources[place] + (f"-{partition - 1}" if partition else "")

    def code(self, source: str, partition: int | None = None) -> int:
        """The code of a source, or of a partition of it."""
        beside = 0 if partition is None else partition + 1
        return self._sources.index(source) + beside * len(self._sources)


def parse_id(text: str) -> MessageId:
    """The id of its text; raises MessageIdError."""
    match = _ID.match(text)
    if match is None:
        raise MessageIdError(f"{text!r} is no message id such as lines/17 or lines/17.2")
    stream, number, path = match.groups()
    return MessageId(stream, int(number), tuple(int(k) for k in path.split(".")[1:]))
