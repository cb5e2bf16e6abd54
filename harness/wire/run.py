"""One run of the recorder: its connections, its armed cuts, its logical time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from bettong.harness.wire.armed import ArmedCut, ArmedRefusal
from bettong.harness.wire.conversation import Keys, Ledger
from bettong.harness.wire.framing.base import Info

if TYPE_CHECKING:
    from bettong.harness.wire.tunnel import Tunnel


class WireRun:
    """What is recorded from one ``begin`` to the next, over all endpoints."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.tunnels: list[Tunnel] = []
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
