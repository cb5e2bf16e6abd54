"""Servers that have room for what they are asked to keep and to serve, and for no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bettong.engine.ingest.gateway import Gateway
from bettong.engine.net.access import ListenConfig
from bettong.engine.net.listener import Limits
from bettong.engine.receiver.server import Receiver
from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.corners import amounts
from bettong.scenarios.counting import COUNTING


def _few(limits: Limits | None) -> Limits:
    """Room for the connections of a sender and of two drivers, one of which is taken for dead, and
    for one more."""
    return replace(limits or Limits(), connections=4, strangers=3)


class FullGateway(Gateway):
    """Has room for its one stream, and for few connections."""

    def __init__(
        self, access: ListenConfig, directory: Path, limits: Limits | None = None, **options: Any
    ) -> None:
        super().__init__(access, directory, _few(limits), max_streams=1, **options)


class FullReceiver(Receiver):
    """Has room for its one application, and for few connections."""

    def __init__(
        self, access: ListenConfig, directory: Path, limits: Limits | None = None, **options: Any
    ) -> None:
        super().__init__(access, directory, _few(limits), max_applications=1, **options)


FULL = replace(
    COUNTING,
    name="counting_full",
    title="sums in 2 batches, with a gateway and a receiver that have room for no more",
    input=amounts,
    classes={
        "gateway": "bettong.scenarios.full:FullGateway",
        "receiver": "bettong.scenarios.full:FullReceiver",
    },
)

SCENARIOS: Sequence[Scenario] = (FULL,)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
