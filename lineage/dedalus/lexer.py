"""Tokens of a Dedalus program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.syntax import Position

# A longer literal is a mistake; and Python refuses to read one of more than 4,300 digits.
MAX_DIGITS = 18

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+ | //[^\n]*)
  | (?P<newline>\n)
  | (?P<comment>/\*)
  | (?P<string>"[^"\n]*")
  | (?P<number>[0-9]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_.?]*)
  | (?P<mark>:-|==|!=|<=|>=|[-+*/<>(),;@=])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token: ``kind`` is string, number, name, mark or end; ``line`` counts from 1."""

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else f"'{self.text}'"


def tokens(text: str, file: str) -> Iterator[Token]:
    """The tokens of a program, an ``end`` last; raises DedalusError for what is none."""
    line = 1
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            where = Position(file, line)
            if text[at] == '"':
                raise DedalusError(where, "a string is not closed: expected '\"' on this line")
            hint = ": a clause ends with ';'" if text[at] == "." else ""
            raise DedalusError(where, f"unexpected character {text[at]!r}{hint}")
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind == "comment":
            end = text.find("*/", at)
            if end < 0:
                raise DedalusError(Position(file, line), "a comment is not closed: expected '*/'")
            line += text.count("\n", at, end)
            at = end + 2
        elif kind != "space":
            if kind == "number" and len(match[0]) > MAX_DIGITS:
                raise DedalusError(
                    Position(file, line), f"a number of {len(match[0])} digits; {MAX_DIGITS} fit"
                )
            yield Token(kind, match[0], line)
    yield Token("end", "", line)
