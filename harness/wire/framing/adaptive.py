"""Recognising a connection's protocol, and doing without when it turns out otherwise."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.harness.wire.framing.base import Framing, FramingError, Info, Part, Reply
from bettong.harness.wire.framing.opaque import OpaqueFraming
from bettong.harness.wire.framing.refusal import Refusal
from bettong.harness.wire.framing.registry import (
    framings,
    recognised_by_client,
    recognised_by_server,
)


class AdaptiveFraming(Framing):
    """The framing that suits a connection; direction changes from where it no longer does.

    Never raises FramingError: ``problem`` says why a framing was given up."""

    protocol = "adaptive"

    def __init__(self, protocol: str | None = None) -> None:
        self.problem: str | None = None
        self._framing: Framing | None = framings()[protocol]() if protocol else None
        self._asked = 0
        self._unreported_client = 0  # bytes that no part covers yet
        self._unreported_server = 0

    @property
    def recognised(self) -> str:
        """The protocol in force."""
        return "unknown" if self._framing is None else self._framing.protocol

    def client(self, data: bytes) -> list[Part]:
        if self._framing is None:
            self._framing = recognised_by_client(data)()
        self._unreported_client += len(data)
        before: list[Part] = []
        if self.problem is None:
            try:
                return self._asks(self._framing.client(data))
            except FramingError as e:
                before = self._asks(e.parts)
                self._framing = self._given_up(e)
        left = bytes(self._unreported_client)
        return [*before, *self._asks(self._framing.client(left) if left else ())]

    def server(self, data: bytes) -> list[Reply]:
        if self._framing is None:
            self._framing = recognised_by_server(data)()
        self._unreported_server += len(data)
        before: list[Reply] = []
        if self.problem is None:
            try:
                return self._answers(self._framing.server(data))
            except FramingError as e:
                before = self._answers(e.replies)
                self._framing = self._given_up(e)
        left = bytes(self._unreported_server)
        return [*before, *self._answers(self._framing.server(left) if left else ())]

    def refusal(self, request: Info, data: bytes) -> Refusal | None:
        return None if self._framing is None else self._framing.refusal(request, data)

    def _asks(self, parts: Iterable[Part]) -> list[Part]:
        parts = list(parts)
        self._unreported_client -= sum(part.size for part in parts)
        self._asked += sum(part.request is not None for part in parts)
        return parts

    def _answers(self, replies: Iterable[Reply]) -> list[Reply]:
        replies = list(replies)
        self._unreported_server -= sum(reply.size for reply in replies)
        return replies

    def _given_up(self, error: FramingError) -> Framing:
        self.problem = f"{self.recognised}: {error}"
        return OpaqueFraming(asked=self._asked)
