"""How far a lineage-driven search goes: bounds that a user need not know, by name, and each of them
by itself for those who do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from bettong.lineage.faults import (
    CRASH,
    DUPLICATE,
    LOSS,
    MOMENT,
    PARTITION,
    PAUSE,
    STORAGE,
    WRITE,
    Bounds,
)
from bettong.lineage.nearest import one_of

if TYPE_CHECKING:
    from bettong.harness.scenario import Scenario

DEFAULT = "standard"

COUNTS: Mapping[str, str] = MappingProxyType(
    {
        "crashes": CRASH,
        "losses": LOSS,
        "pauses": PAUSE,
        "storage": STORAGE,
        "duplicates": DUPLICATE,
        "partitions": PARTITION,
        "moments": MOMENT,
    }
)
"""How many faults of a kind may fire in one run."""

BOUNDS = (*COUNTS, "together", "batches")
"""What bounds a search, each an option of its own."""


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How far the search goes.

    Attributes:
        crashes, losses, pauses, storage, duplicates, partitions: how many of each may fire
            in one run; a power cut, or a crash amid a write, counts as storage.
        moments: how many waits of live batches may end later in one run.
        together: how many faults of all kinds may fire in one run; None for as many as the
            counts allow.
        alone: of these kinds a fault fires alone, however many fire together of the others; but
            what the disk of a server has refused, which it lives through, also with a crash of it.
        batches: they fire in the first so many batches; None for as many as the scenario says.
        find_all: go on after the first counterexample until all minimal ones are known.
        exhaustive: run every single fault at every step as well, or every pair, and compare.
    """

    crashes: int = 1
    losses: int = 1
    batches: int | None = None
    find_all: bool = False
    exhaustive: Literal["", "singles", "pairs"] = ""
    pauses: int = 0
    storage: int = 0
    duplicates: int = 0
    partitions: int = 0
    moments: int = 0
    together: int | None = None
    alone: frozenset[str] = frozenset()

    @property
    def bounds(self) -> Bounds:
        """As the search counts: crashes and losses always, the others where they are asked for."""
        counts = {kind: getattr(self, name) for name, kind in COUNTS.items()}
        asked = {k: most for k, most in counts.items() if most or k in (CRASH, LOSS)}
        if STORAGE in self.alone and self.storage and self.crashes == 1:
            asked[WRITE] = self.storage
        return Bounds(asked, self.together, self.alone & asked.keys(), {WRITE} & asked.keys())

    def over(self, scenario: Scenario) -> SearchBounds:
        """The same with as many batches as there are to be in this scenario."""
        return self if self.batches else replace(self, batches=scenario.batches)

    def words(self) -> str:
        """What a verdict rests on."""
        some = "batches" if self.batches is None else f"{self.batches} batches"
        return f"{self.bounds.words()}, in the first {some}"


_EACH = SearchBounds(pauses=1, storage=1, duplicates=1, partitions=1, moments=1)
_ALONE = frozenset({PAUSE, STORAGE, DUPLICATE, PARTITION})
PROFILES: Mapping[str, SearchBounds] = MappingProxyType(
    {
        "quick": replace(_EACH, together=1),
        "standard": replace(_EACH, together=2, alone=_ALONE),
        "thorough": replace(_EACH, crashes=2, losses=2, together=3, batches=3),
    }
)
"""``quick``: one fault of any kind. ``standard``: one, or a crash and a loss, or a crash of a
server and a write that its disk has refused. ``thorough``: up to three, also in a third batch."""
PROFILE_NAMES = tuple(PROFILES)


def bounds_of(
    profile: str | None = None, given: Mapping[str, int | None] | None = None
) -> SearchBounds:
    """The bounds of a profile, with single bounds in place of its own.

    Args:
        profile: its name; None for the default one. But where counts of faults are given and no
            profile is, these are the whole of it: a crash and a loss unless they say otherwise,
            and none of the other kinds that they do not name.
        given: by :data:`BOUNDS`; None where it is not given. Where it says how many fire
            together, none has to fire alone.

    Raises UsageError for a profile that there is none of.
    """
    own: dict[str, Any] = {k: n for k, n in (given or {}).items() if n is not None}
    if profile is None and own.keys() & COUNTS.keys():
        return SearchBounds(**own)
    if "together" in own:
        own["alone"] = frozenset()
    return replace(PROFILES[one_of(profile or DEFAULT, PROFILE_NAMES, "bounds")], **own)
