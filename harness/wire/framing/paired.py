"""A framing made of two frame readers that share what they know of open requests."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import deque

from bettong.harness.wire.framing.base import (
    Frame,
    FrameReader,
    Framing,
    FramingError,
    Info,
    Part,
    Reply,
)


class _Reader(FrameReader):
    def __init__(self, owner: PairedFraming, of_client: bool) -> None:
        super().__init__()
        self._owner = owner
        self._of_client = of_client

    def measure(self, head: bytes) -> int | None:
        owner = self._owner
        return owner.measure_client(head) if self._of_client else owner.measure_server(head)

    def blank(self, head: bytes) -> tuple[int, int]:
        return self._owner.blank_in_request(head) if self._of_client else (0, 0)

    def frame(self, frame: Frame) -> None:
        if self._of_client:
            self._owner.client_frame(frame)
        else:
            self._owner.server_frame(frame)


class PairedFraming(Framing):
    """The base of framings whose both directions consist of frames that tell their length."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._answers: list[Reply] = []
        self._asked = 0
        self._client = _Reader(self, of_client=True)
        self._server = _Reader(self, of_client=False)
        self.open: deque[int] = deque()  # requests whose replies are due, oldest first

    def client(self, data: bytes) -> list[Part]:
        self._parts = []
        try:
            self._client.feed(data)
        except FramingError as e:
            e.parts = self._parts
            raise
        return self._parts

    def server(self, data: bytes) -> list[Reply]:
        self._answers = []
        try:
            self._server.feed(data)
        except FramingError as e:
            e.replies = self._answers
            raise
        return self._answers

    @abstractmethod
    def measure_client(self, head: bytes) -> int | None: ...

    @abstractmethod
    def measure_server(self, head: bytes) -> int | None: ...

    @abstractmethod
    def client_frame(self, frame: Frame) -> None: ...

    @abstractmethod
    def server_frame(self, frame: Frame) -> None: ...

    def blank_in_request(self, head: bytes) -> tuple[int, int]:
        """Where a client's frame has what differs between equal requests."""
        return 0, 0

    def part(self, size: int, request: Info | None = None) -> int:
        """Tell of a part; gives the number of the request if it completes one."""
        self._parts.append(Part(size, request))
        if request is None:
            return -1
        number = self._asked
        self._asked += 1
        if request.replied:
            self.open.append(number)
        return number

    def answer(self, size: int, *to: int) -> None:
        self._answers.append(Reply(size, to))

    def answer_more(self, size: int) -> None:
        self._answers.append(Reply(size, more=True))

    def answer_oldest(self, size: int) -> None:
        """These bytes complete the reply to the oldest open request, if there is one."""
        self.answer(size, *([self.open.popleft()] if self.open else []))


_SET_MORE = re.compile(
    r"SET\s+(?:@@)?(?:GLOBAL|PERSIST)|SET\s.*AUTOCOMMIT`?\s*:?=(?!\s*'?(?:0|OFF|FALSE)\b)"
    r"|SET\s+STATEMENT\b|SET\s.*\(",
    re.IGNORECASE | re.DOTALL,
)
_QUIET = ("BEGIN", "SET SESSION", "SHOW")
"""Statements that keep nothing themselves; what else their request has may."""


def verb(statement: bytes) -> str:
    """The first word of an SQL statement, comments skipped: ``INSERT``. ``SET SESSION``: one that
    changes the session only, commits nothing and calls no function. Where others follow one that
    keeps nothing, the first of them that may is named too: ``BEGIN+INSERT``."""
    text, names = _code(statement.decode("utf-8", "replace")), []
    while True:
        first, _, following = text.partition(";")
        names.append(_word(first))
        following = _code(following)
        if names[-1] not in _QUIET or not following:
            break
        text = following
    return names[0] if names[-1] in _QUIET else "+".join(dict.fromkeys(names))


_WORKS = frozenset(
    (
        *("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "UPSERT", "TRUNCATE"),
        *("COPY", "LOAD", "CALL", "DO", "EXECUTE", "COMMIT", "END"),
    )
)


def works(label: str) -> bool:
    """Whether a statement with this label reads or writes rows, or commits: it may be refused."""
    return not _WORKS.isdisjoint(re.split(r"\+|x\d+\+?", label))


def _word(text: str) -> str:
    word = ""
    for character in text:
        if not (character.isalpha() or character == "_"):
            break
        word += character
    if word.upper() == "SET" and not _SET_MORE.match(text):
        return "SET SESSION"
    return word.upper() or "?"


def _code(text: str) -> str:
    """It, without the comments before it."""
    text = text.lstrip()
    while text.startswith(("--", "/*")):
        end = "\n" if text.startswith("--") else "*/"
        text = text.partition(end)[2].lstrip()
    return text


def shown(statement: bytes, length: int = 120) -> str:
    """A statement on one line, shortened; what comes before it, as a comment that tells who asks,
    tells nothing of what it does."""
    text = " ".join(_code(statement.decode("utf-8", "replace")).split())
    return text if len(text) <= length else text[: length - 1] + "…"
