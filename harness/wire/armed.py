"""Cuts in force, and the evidence that they fired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bettong.harness.wire.conversation import Keys
from bettong.harness.wire.cutpoints import CutPoint, Kind, names_of
from bettong.harness.wire.framing.base import Info

Lasts = Literal["once", "retries"]


@dataclass(frozen=True)
class WireEvidence:
    """What a cut did.

    Attributes:
        fired: whether it fired.
        times: how often; more than once only if it lasts.
        request: what it hit first: label and, where the protocol tells, more.
        detail: why it did not fire although its request was met; else empty.
    """

    fired: bool
    times: int
    request: str
    detail: str


@dataclass
class ArmedCut:
    """A cut in force until it is healed.

    Attributes:
        lasts: ``once``; ``retries``: the same request, sent again on any connection, meets the same
            fate.
        action: called at the point, in a thread of its own, while the connection's flow is held.
        close: whether the connection is closed at the point; if not, its flow goes on.
        answer: what the client is told, before the connection is closed, instead of a reply.
    """

    point: CutPoint
    lasts: Lasts = "once"
    action: Callable[[], object] | None = None
    close: bool = True
    answer: bytes = b""
    times: int = 0
    healed: bool = False
    _request: str = ""
    _detail: str = ""
    _error: str = ""
    _claimed: bool = False
    _seen: int = 0

    @property
    def kind(self) -> Kind:
        return self.point.kind

    @property
    def live(self) -> bool:
        """Whether a request may still meet it."""
        return not self.healed and (not self._claimed or self.lasts == "retries")

    def met_by(self, endpoint: str, request: Info, keys: Keys) -> bool:
        if not self.live:
            return False
        if self._is_the_one(endpoint, request, keys):
            self._claimed = True
            return True
        again = self.point.own in (keys.own, *names_of(request.label))
        return self._claimed and endpoint == self.point.endpoint and again

    def _is_the_one(self, endpoint: str, request: Info, keys: Keys) -> bool:
        if self.point.match != "since" and not self.point.by_count:
            return self.point.met_by(endpoint, keys)
        if endpoint != self.point.endpoint or self.point.key not in names_of(request.label):
            return False
        self._seen += 1
        return self._seen == self.point.occurrence

    def missed(self, why: str) -> None:
        self._detail = why

    def refused(self, error: str) -> None:
        self._error = error

    def hit(self, request: Info) -> None:
        self.times += 1
        self._request = self._request or request.detail or request.label

    def evidence(self) -> WireEvidence:
        hit = f"{self._request} with {self._error}" if self._error else self._request
        return WireEvidence(self.times > 0, self.times, hit, self._detail)

    def heal(self) -> WireEvidence:
        """End it; connections work again."""
        self.healed = True
        return self.evidence()


@dataclass
class ArmedRefusal:
    """The next connection to an endpoint is turned away, once."""

    endpoint: str
    times: int = 0
    healed: bool = False

    @property
    def live(self) -> bool:
        """Whether a connection may still meet it."""
        return not self.healed and self.times == 0

    def evidence(self) -> WireEvidence:
        return WireEvidence(self.times > 0, self.times, "a connection", "")

    def heal(self) -> WireEvidence:
        """End it; connections work again."""
        self.healed = True
        return self.evidence()
