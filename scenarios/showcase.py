"""The other applications that ship, as scenarios: small input, in a few batches."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Messages, Scenario

_APPLICATIONS = "bettong.scenarios.applications"
_LINE_FEED = b"\n"


def shown(
    name: str, title: str, application: str, messages: int, batch: int, **options: int
) -> Scenario:
    """A scenario of an application, with input from the application's own generator."""
    module = f"{_APPLICATIONS}.{application}"

    def generated() -> Messages:
        found: Messages = importlib.import_module(module).messages(messages, **options)
        return {s: [m for m in sent if _LINE_FEED not in m] for s, sent in found.items()}

    return Scenario(name, title, f"{module}:app", generated, batch=batch, frame=batch // 2)


DOUBLING = shown("doubling", "numbers doubled at one sink, counted at another", "counting", 12, 4)
ALERTS = shown(
    "alerts", "alerts on single transactions, totals and windows", "alerts", 60, 20, users=2
)
CELSIUS = shown("celsius", "degrees converted, without key or state", "celsius", 24, 8)

SCENARIOS: Sequence[Scenario] = (
    DOUBLING,
    ALERTS,
    CELSIUS,
    shown("running_sum", "running sums of 26 keys", "running_sum", 24, 8),
    shown("running_sum_arrays", "the same over Arrow arrays", "running_sum_arrays", 24, 8),
    shown("alphabet_votes", "votes for letters, in binary", "alphabet_votes", 24, 8),
    shown("follower_graph", "followers counted when the input ends", "follower_graph", 24, 8),
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
