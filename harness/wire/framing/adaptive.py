"""Recognising a connection's protocol, and doing without when it turns out otherwise."""

from __future__ import annotations

from bettong.harness.wire.framing.base import Framing, FramingError, Part, Reply
from bettong.harness.wire.framing.opaque import OpaqueFraming
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
        try:
            if self.problem is None:
                parts = self._framing.client(data)
            else:
                parts = self._framing.client(bytes(self._unreported_client))
        except FramingError as e:
            parts = self._give_up(e).client(bytes(self._unreported_client))
        self._unreported_client -= sum(part.size for part in parts)
        self._asked += sum(part.request is not None for part in parts)
        return parts

    def server(self, data: bytes) -> list[Reply]:
        if self._framing is None:
            self._framing = recognised_by_server(data)()
        self._unreported_server += len(data)
        try:
            if self.problem is None:
                answers = self._framing.server(data)
            else:
                answers = self._framing.server(bytes(self._unreported_server))
        except FramingError as e:
            answers = self._give_up(e).server(bytes(self._unreported_server))
        self._unreported_server -= sum(answer.size for answer in answers)
        return answers

    def _give_up(self, error: FramingError) -> Framing:
        self.problem = f"{self.recognised}: {error}"
        self._framing = OpaqueFraming(asked=self._asked)
        return self._framing
