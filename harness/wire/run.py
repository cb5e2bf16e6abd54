"""One run of the recorder: its connections, its armed cuts, its logical time."""

from __future__ import annotations

import itertools
from typing import Protocol

from bettong.harness.toxiproxy.spec import Stream
from bettong.harness.wire.armed import ArmedCut, ArmedRefusal
from bettong.harness.wire.conversation import Chunk, Keys, Ledger
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.framing.base import Info
from bettong.harness.wire.session import Session


class RecordedTunnel(Protocol):
    """What is recorded of one connection.

    Attributes:
        endpoint: its name.
        opened, closed: the run's logical time; None while it is open.
        chunks: in the order in which they came.
        size: bytes of each direction.
        framing, session: of its protocol, and the requests made so far.
    """

    endpoint: str
    opened: int
    closed: int | None
    chunks: list[Chunk]
    size: dict[Stream, int]
    framing: AdaptiveFraming
    session: Session


class WireRun:
    """What is recorded from one ``begin`` to the next, over all endpoints."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.tunnels: list[RecordedTunnel] = []
        self.cuts: list[ArmedCut] = []
        self.refusals: list[ArmedRefusal] = []
        self._clock = itertools.count(1)

    def tick(self) -> int:
        return next(self._clock)


class EndpointJudge:
    """The armed cuts of a run as one endpoint meets them."""

    def __init__(self, run: WireRun, endpoint: str) -> None:
        self._run = run
        self._endpoint = endpoint

    @property
    def armed(self) -> bool:
        return any(c.live and c.point.endpoint == self._endpoint for c in self._run.cuts)

    def decide(self, request: Info, keys: Keys) -> ArmedCut | None:
        met = [c for c in self._run.cuts if c.met_by(self._endpoint, request, keys)]
        return met[0] if met else None
