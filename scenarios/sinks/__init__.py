"""Sinks under test that ship: what users write, and how each of them fails."""

from __future__ import annotations

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios.sinks.shipped import SHIPPED, short_name

__all__ = ["SHIPPED", "entries", "short_name"]


def entries() -> list[CatalogEntry]:
    """The sinks as ``bettong list`` shows them; their names are targets of check-sink."""
    return SHIPPED
