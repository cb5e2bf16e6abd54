"""Message ids.

An input's id is ``stream/n``, n counted from 0 by the source. A step that gives one message for
one keeps the id; a step that gives many appends ``.k`` to it, k counted from 0 in the order given.
So word count's outputs for the message ``lines/17`` are ``lines/17.0``, ``lines/17.1``, … in the
order of its words. A merge of streams that come from the same source appends ``.i``, the place of
the stream in the merge, because both may hold the same id.

A state entity meets the messages of one micro-batch by number first, then by the stream's place
in the application, then by path.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bettong.lineage.errors import BettongError

_ID = re.compile(r"([^/]+)/(0|[1-9][0-9]*)((?:\.(?:0|[1-9][0-9]*))*)\Z")
STREAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


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


def parse_id(text: str) -> MessageId:
    """The id of its text; raises MessageIdError."""
    match = _ID.match(text)
    if match is None:
        raise MessageIdError(f"{text!r} is no message id such as lines/17 or lines/17.2")
    stream, number, path = match.groups()
    return MessageId(stream, int(number), tuple(int(k) for k in path.split(".")[1:]))
