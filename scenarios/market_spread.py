"""Market Spread: orders are checked against quotes of the same symbols; two streams, one state."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Messages, Scenario
from bettong.scenarios.applications import market_spread

MESSAGES = 12
SEED = 4
SYMBOLS = 4
REJECTED = 0.25


def quotes_and_orders() -> Messages:
    """A few quotes and as many orders, of which some are rejected; the same each time."""
    return market_spread.messages(MESSAGES, SEED, SYMBOLS, REJECTED)


MARKET_SPREAD = Scenario(
    "market_spread",
    "orders checked against quotes: two streams of 12 messages in 3 batches",
    "bettong.scenarios.applications.market_spread:app",
    quotes_and_orders,
    batch=4,
    frame=4,
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of it."""
    scenario = MARKET_SPREAD
    return [CatalogEntry(scenario.name, "scenario", scenario.title, given(scenario))]
