"""The framing of last resort: a request is what the client says until the server speaks."""

from __future__ import annotations

from bettong.harness.wire.framing.base import Framing, Info, Part, Reply


class OpaqueFraming(Framing):
    """For protocols that are not known, and for encrypted streams.

    A request's content cannot be known: where it ends is known only when the server speaks."""

    protocol = "opaque"

    def __init__(self, asked: int = 0) -> None:
        self._asked = asked
        self._clients_turn = False  # the client spoke last
        self._open: int | None = None

    def client(self, data: bytes) -> list[Part]:
        if self._clients_turn:
            return [Part(len(data), more=True)]
        self._clients_turn = True
        self._open = self._asked
        self._asked += 1
        return [Part(len(data), Info("bytes"))]

    def server(self, data: bytes) -> list[Reply]:
        self._clients_turn = False
        answered = () if self._open is None else (self._open,)
        self._open = None
        return [Reply(len(data), answered)]
