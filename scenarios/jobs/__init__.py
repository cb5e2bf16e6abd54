"""Streaming jobs under test that ship: what users run, right and broken."""

from __future__ import annotations

from functools import partial

from bettong.harness.catalog import CatalogEntry
from bettong.scenarios.jobs.shipped import SHIPPED, Shipped

__all__ = ["SHIPPED", "Shipped", "entries"]


def entries() -> list[CatalogEntry]:
    """The jobs as ``bettong list`` shows them; their names are targets of check-job."""
    return [
        CatalogEntry(
            name=job.target,
            kind="job",
            title=f"{job.title}: {job.level}",
            load=partial(str, job.target),
            expect="valid" if job.level == "effectively-once" else "invalid",
        )
        for job in SHIPPED
    ]
