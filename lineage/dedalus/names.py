"""Relations by name: how many columns each has, and that every one that is read is also written."""

from __future__ import annotations

from collections.abc import Iterator

from bettong.lineage.counted import counted
from bettong.lineage.dedalus.errors import DedalusError, hint
from bettong.lineage.dedalus.loader import Program
from bettong.lineage.dedalus.syntax import Position
from bettong.lineage.nearest import nearest

CRASH = "crash"
CLOCK = "clock"
BUILT_IN = {CRASH: 3, CLOCK: 3}
"""Columns of the relations that the failure specification fills: ``crash(Seen, Node, Time)``
(in every round, at every node) and ``clock(From, To, Sent)`` (in the round in which what From sent
To in round Sent arrives)."""

# A name that is so near to a known one is taken for a slip even where an empty relation is fine.
_SLIP = 0.8


def columns(program: Program) -> dict[str, int]:
    """Number of columns of every relation; raises DedalusError where two uses differ."""
    found: dict[str, tuple[int, Position | None]] = {
        name: (size, None) for name, size in BUILT_IN.items()
    }
    for relation, size, position in _uses(program):
        known, first = found.setdefault(relation, (size, position))
        if known != size:
            where = f"at {first}" if first else "as a built-in relation"
            raise DedalusError(
                position,
                f"{relation} has {_columns(size)} here, but {_columns(known)} {where}: "
                f"expected {known}",
            )
    return {relation: size for relation, (size, _) in found.items()}


def check_names(program: Program) -> None:
    """Raise DedalusError for a relation that is read but that no fact or rule fills.

    In an included file (a library), ``notin r(…)`` may name a relation that the including program
    leaves out, such as an optional ``timer_cancel``: unless its name looks like a slip.
    """
    writers = [(r.head.relation, r.position) for r in program.rules]
    writers += [(f.relation, f.position) for f in program.facts]
    for relation, position in writers:
        if relation in BUILT_IN:
            raise DedalusError(position, f"{relation} is built in and cannot be written")
    known = {relation for relation, _ in writers} | BUILT_IN.keys()
    for rule in program.rules:
        for term in rule.body_terms:
            relation, position = term.predicate.relation, term.predicate.position
            if relation in known:
                continue
            if term.negated and position.file in program.included and not _slip(relation, known):
                continue
            raise DedalusError(
                position,
                f"no fact or rule fills the relation '{relation}'{hint(relation, known)}",
            )


def _slip(name: str, known: set[str]) -> bool:
    return nearest(name, known, _SLIP) is not None


def _uses(program: Program) -> Iterator[tuple[str, int, Position]]:
    # What fills a relation says how wide it is; only then come its readers.
    for fact in program.facts:
        yield fact.relation, len(fact.values), fact.position
    for rule in program.rules:
        yield rule.head.relation, len(rule.head.terms), rule.position
    for rule in program.rules:
        for term in rule.body_terms:
            p = term.predicate
            yield p.relation, len(p.terms), p.position


def _columns(size: int) -> str:
    return counted(size, "column")
