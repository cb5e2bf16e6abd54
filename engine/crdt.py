"""States that can be changed at several places at once and merged later.

Shapiro, Preguiça, Baquero, Zawirski, *A comprehensive study of Convergent and Commutative
Replicated Data Types* (INRIA RR-7506, 2011). Merging is associative, commutative and idempotent,
so places that have seen the same changes are in the same state, in whatever order and however
often they were merged. Each *site* changes what is its own alone: a name that one engine has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

_site = ""


def site() -> str:
    """The name under which changes are made now."""
    return _site


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Changes inside are those of a site."""
    global _site
    before, _site = _site, name
    try:
        yield
    finally:
        _site = before


M = TypeVar("M", bound="Mergeable")


class Mergeable(Protocol):
    """A state that can be merged."""

    def merge(self: M, other: M) -> None:
        """Take over what another one of the same entity has seen."""
        ...


@dataclass
class GCounter:
    """A counter that only grows: for each site what it has added."""

    counts: dict[str, int] = field(default_factory=dict)

    @property
    def value(self) -> int:
        return sum(self.counts.values())

    def add(self, number: int = 1) -> None:
        """Raises ValueError for a number below 0."""
        if number < 0:
            raise ValueError(f"a GCounter only grows, got {number}: use a PNCounter")
        self.counts[_site] = self.counts.get(_site, 0) + number

    def merge(self, other: GCounter) -> None:
        _highest(self.counts, other.counts)


@dataclass
class PNCounter:
    """A counter: for each site what it has added, and what it has taken away."""

    added: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    @property
    def value(self) -> int:
        return sum(self.added.values()) - sum(self.taken.values())

    def add(self, number: int = 1) -> None:
        side = self.added if number >= 0 else self.taken
        side[_site] = side.get(_site, 0) + abs(number)

    def merge(self, other: PNCounter) -> None:
        _highest(self.added, other.added)
        _highest(self.taken, other.taken)


@dataclass
class OrSet:
    """A set of texts. To remove one takes away the additions that were seen; an addition that
    was not seen stays.

    Attributes:
        tags: for each member the additions that were not removed, sorted.
        removed: additions that were, sorted.
        clock: for each site how often it has added.
    """

    tags: dict[str, list[str]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    clock: dict[str, int] = field(default_factory=dict)

    @property
    def value(self) -> frozenset[str]:
        return frozenset(self.tags)

    def add(self, member: str) -> None:
        self.clock[_site] = self.clock.get(_site, 0) + 1
        tag = f"{self.clock[_site]} {_site}"
        self.tags[member] = sorted([*self.tags.get(member, ()), tag])

    def remove(self, member: str) -> None:
        """Nothing happens when it is no member."""
        self.removed = sorted([*self.removed, *self.tags.pop(member, ())])

    def merge(self, other: OrSet) -> None:
        removed = {*self.removed, *other.removed}
        both = {
            member: {*self.tags.get(member, ()), *other.tags.get(member, ())} - removed
            for member in {*self.tags, *other.tags}
        }
        self.tags = {member: sorted(tags) for member, tags in both.items() if tags}
        self.removed = sorted(removed)
        _highest(self.clock, other.clock)


@dataclass
class LwwRegister:
    """A text; of several the one set at the latest time counts. At one time the site's name
    decides, and then the text, so that it is the same everywhere."""

    value: str = ""
    at: float = float("-inf")
    by: str = ""

    def set(self, value: str, at: float) -> None:
        """``at`` comes from the message, not from a clock, so that a replay sets the same."""
        self._take(value, float(at), _site)

    def merge(self, other: LwwRegister) -> None:
        self._take(other.value, other.at, other.by)

    def _take(self, value: str, at: float, by: str) -> None:
        self.at, self.by, self.value = max((self.at, self.by, self.value), (at, by, value))


def is_mergeable(cls: type) -> bool:
    """Whether entities of a class can be merged."""
    return callable(getattr(cls, "merge", None))


def _highest(own: dict[str, Any], other: dict[str, Any]) -> None:
    for name, number in other.items():
        own[name] = max(own.get(name, 0), number)
