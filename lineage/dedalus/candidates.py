"""Facts that may happen, and the ways in which they may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from bettong.lineage.dedalus.leaves import Leaf
from bettong.lineage.dedalus.lowering import Aggregation
from bettong.lineage.dedalus.tables import Row
from bettong.lineage.protocols.rounds import as_text


class Key(NamedTuple):
    """A fact of a round. ``kept``: it is there because an @next rule, or its node's standstill,
    brought it into the round (distinguished where nodes may stop)."""

    relation: str
    row: Row
    time: int
    kept: bool = False

    def __str__(self) -> str:
        text = f"{self.relation}({as_text(self.row)})@{self.time}"
        return f"kept {text}" if self.kept else text


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which a fact may come to hold.

    Attributes:
        rule: its label.
        present: facts that must hold; certain ones are left out.
        absent: possible facts that must not hold.
        leaves: what must hold of deliveries and nodes.
        inner: of ``present``, those that are derived together with the head (recursion).
    """

    rule: str
    present: tuple[Key, ...]
    absent: tuple[Key, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    inner: frozenset[Key] = frozenset()

    def with_leaves(self, leaves: Iterable[Leaf]) -> Candidate:
        """The same, under further conditions; those that cannot fail are left out."""
        more = tuple(leaf for leaf in leaves if leaf.faults)
        return replace(self, leaves=self.leaves + more) if more else self


@dataclass(frozen=True, slots=True)
class Group:
    """A group of an aggregation: the facts it may range over."""

    aggregation: Aggregation
    group: Row
    members: tuple[Key, ...]
