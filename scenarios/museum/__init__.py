"""Real bugs and traps, by their public ids, that check-job finds with no hint."""

from bettong.harness.catalog import CatalogEntry, given
from bettong.scenarios.museum.exhibits import EXHIBITS, Exhibit

__all__ = ["EXHIBITS", "Exhibit", "entries"]


def entries() -> list[CatalogEntry]:
    """The exhibits, for ``bettong museum``."""
    return [
        CatalogEntry(
            name=exhibit.id,
            kind="exhibit",
            title=exhibit.title,
            load=given(exhibit),
            expect="invalid",
        )
        for exhibit in EXHIBITS
    ]
