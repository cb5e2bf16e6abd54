"""Streaming jobs under test that ship: what users run, right and broken."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios.jobs.shipped import SHIPPED

__all__ = ["SHIPPED", "entries"]


def entries() -> Sequence[CatalogEntry]:
    """The jobs as ``bettong list`` shows them; their names are targets of check-job."""
    return SHIPPED
