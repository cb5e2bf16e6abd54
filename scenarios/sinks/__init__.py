"""Sinks under test that ship: what users write, and how each of them fails."""

from __future__ import annotations

from functools import partial

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios.sinks.shipped import SHIPPED, Shipped

__all__ = ["SHIPPED", "Shipped", "entries"]


def entries() -> list[CatalogEntry]:
    """The sinks as ``bettong list`` shows them; their names are targets of check-sink."""
    return [
        CatalogEntry(
            name=sink.target,
            kind="sink",
            title=f"{sink.title}: {sink.level}",
            load=partial(str, sink.target),
            expect="valid" if sink.level == "effectively-once" else "invalid",
        )
        for sink in SHIPPED
    ]
