"""What there is to run, by name: the entries of every catalog that is installed.

A catalog is a function ``entries() -> Sequence[CatalogEntry]`` named by an entry point of the
group ``bettong.catalog``, so that users ship scenarios of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Literal, TypeVar

from bettong.lineage.errors import BettongError
from bettong.lineage.nearest import one_of
from bettong.lineage.results import Guarantee
from bettong.lineage.user_code import guarded

T = TypeVar("T")
Kind = Literal["scenario", "suite", "protocol", "sink", "job", "exhibit", "bench"]
GROUP = "bettong.catalog"
FORMER_NAMES: Mapping[str, str] = {
    "bettong.scenarios.sinks.twins": "bettong.scenarios.sinks.mutants",
    "broken_twins": "mutants",
    "twins": "shipped-mutants",
}
"""What people may have scripted, and what it is called today."""


class CatalogError(BettongError):
    """A catalog that cannot be read."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One thing to run.

    Attributes:
        title: one line for a list.
        expect: whether it is right.
        load: gives the thing itself; called only when it is wanted.
        schedule: for a broken one, the fault file that shows it.
        level: of a sink or a job, what is found.
        fault: the smallest fault that lowers the level.
        mechanism: why it does, or why none can.
    """

    name: str
    kind: Kind
    title: str
    load: Callable[[], Any]
    expect: Literal["valid", "invalid"] = "valid"
    schedule: str | None = None
    level: Guarantee | None = None
    fault: str = ""
    mechanism: str = ""

    def to_dict(self) -> dict[str, str]:
        """As ``bettong list --json`` prints it."""
        value = {
            "name": self.name,
            "kind": self.kind,
            "title": f"{self.title}: {self.level}" if self.level else self.title,
            "expect": self.expect,
        }
        return value if self.schedule is None else {**value, "schedule": self.schedule}


def judged(
    kind: Literal["sink", "job"],
    target: str,
    title: str,
    level: Guarantee,
    fault: str = "",
    mechanism: str = "",
) -> CatalogEntry:
    """The entry of a sink or a job, whose name is its target."""
    expect: Literal["valid", "invalid"] = "valid" if level == "effectively-once" else "invalid"
    return CatalogEntry(target, kind, title, given(target), expect, None, level, fault, mechanism)


def given(thing: T) -> Callable[[], T]:
    """A ``load`` that gives what is there already."""
    return lambda: thing


def entries(kind: Kind | None = None) -> list[CatalogEntry]:
    """All entries, or those of a kind, by kind and name.

    Raises CatalogError for two of one name, UserCodeError for a catalog that cannot be read."""
    found: dict[tuple[str, str], CatalogEntry] = {}
    for point in metadata.entry_points(group=GROUP):
        with guarded(f"the catalog {point.value}"):
            given: Sequence[CatalogEntry] = point.load()()
        for entry in given:
            if found.setdefault((entry.kind, entry.name), entry) is not entry:
                raise CatalogError(f"two catalogs have a {entry.kind} called {entry.name}")
    return [e for key, e in sorted(found.items()) if kind in (None, e.kind)]


def find(name: str, *kinds: Kind) -> CatalogEntry:
    """The entry of that name; raises UsageError with the nearest name."""
    known = {e.name: e for e in entries() if e.kind in kinds}
    found = known[one_of(current_name(name), tuple(known), " or ".join(kinds))]

    def load() -> Any:
        with guarded(f"{found.kind} {found.name}"):
            return found.load()

    return replace(found, load=load)


def current_name(name: str) -> str:
    """The name that a thing goes by today; standard error says so when it has changed."""
    if name not in FORMER_NAMES:
        return name
    print(f"bettong: {name} is called {FORMER_NAMES[name]} now", file=sys.stderr)
    return FORMER_NAMES[name]
