"""From the syntax tree to the few forms that are evaluated.

* ``r@N`` in a body becomes a relation of its own, ``r@N``, filled in round N and kept from then
  on; its rule fires from round N on.
* A rule with aggregates becomes a plain rule that fills ``r#K`` with the groups and the values,
  with the rule's timing, and an aggregation of that in the round in which they arrive. A relation
  is a set, so an aggregate ranges over distinct values (C4, Molly's engine, does the same).
* An expression in a column of a body term becomes a variable and a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bettong.lineage.dedalus.loader import Program
from bettong.lineage.dedalus.names import CLOCK, CRASH, check_names, columns
from bettong.lineage.dedalus.safety import check_safety
from bettong.lineage.dedalus.syntax import (
    Aggregate,
    Arithmetic,
    BodyTerm,
    Comparison,
    Expression,
    Fact,
    Position,
    Predicate,
    Rule,
    Term,
    Timing,
    Variable,
    Wildcard,
)


@dataclass(frozen=True, slots=True)
class PlainRule:
    """A rule without aggregates.

    Attributes:
        number: unique in the program.
        relation: what it fills.
        columns: expressions for the columns of what it fills.
        timing: when the head holds.
        location: where the rule fires (the first column of its first body term), or None when
            that is ``_``.
        body: predicates over lowered relations, and comparisons.
        from_round: the first round in which it can fire.
        to_round: the last one, or None.
        label: the relation's name for people, with the line: ``log (2pc.ded:7)``.
        position: its place in the program.
    """

    number: int
    relation: str
    columns: tuple[Expression, ...]
    timing: Timing
    location: Expression | None
    body: tuple[BodyTerm | Comparison, ...]
    from_round: int
    label: str
    position: Position
    to_round: int | None = None

    def active(self, time: int) -> bool:
        """Whether it can fire in a round."""
        return self.from_round <= time and (self.to_round is None or time <= self.to_round)

    @property
    def reads(self) -> tuple[BodyTerm, ...]:
        """Its body terms, in order."""
        return tuple(b for b in self.body if isinstance(b, BodyTerm))


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``relation`` is what the aggregates make of each group of ``source``.

    Attributes:
        layout: for each column of ``relation`` the column of ``source`` it comes from, and the
            aggregate's function, or None for a column of the group.
    """

    relation: str
    source: str
    layout: tuple[tuple[int, str | None], ...]
    label: str
    position: Position


@dataclass(frozen=True, slots=True)
class Lowered:
    """A checked program in the forms that are evaluated.

    Attributes:
        columns: relations as they were written, with their number of columns.
        ticks: the pairs (relation, round) of which the body of some rule reads.
    """

    rules: tuple[PlainRule, ...]
    aggregations: tuple[Aggregation, ...]
    facts: tuple[Fact, ...]
    columns: dict[str, int]
    ticks: frozenset[tuple[str, int]]


def tick_relation(relation: str, tick: int) -> str:
    """The name of the relation that keeps what held in that round."""
    return f"{relation}@{tick}"


def lower(program: Program) -> Lowered:
    """Check a program's names and variables and lower it; raises DedalusError."""
    widths = columns(program)
    check_names(program)
    rules: list[PlainRule] = []
    aggregations: list[Aggregation] = []
    ticks: set[tuple[str, int]] = set()
    for number, rule in enumerate(program.rules):
        check_safety(rule)
        label = f"{rule.head.relation} ({Path(rule.position.file).name}:{rule.position.line})"
        relation, terms = rule.head.relation, rule.head.terms
        if any(isinstance(t, Aggregate) for t in terms):
            relation, terms = _aggregate(rule, number, label, aggregations)
        body, from_round = _body(rule, ticks)
        first = next(b for b in body if isinstance(b, BodyTerm)).predicate.terms[0]
        rules.append(
            PlainRule(
                number,
                relation,
                tuple(t for t in terms if not isinstance(t, Aggregate)),
                rule.timing,
                None if isinstance(first, Wildcard | Aggregate) else first,
                body,
                from_round,
                label,
                rule.position,
            )
        )
    rules += [
        _tick_rule(relation, tick, widths[relation], len(rules) + i, program)
        for i, (relation, tick) in enumerate(sorted(ticks))
    ]
    return Lowered(tuple(rules), tuple(aggregations), program.facts, widths, frozenset(ticks))


def _tick_rule(relation: str, tick: int, width: int, number: int, program: Program) -> PlainRule:
    """What fills ``r@N`` in round N."""
    position = next(
        t.predicate.position
        for r in program.rules
        for t in r.body_terms
        if (t.predicate.relation, t.tick) == (relation, tick)
    )
    columns = tuple(Variable(f"?{i}") for i in range(width))
    read = BodyTerm(Predicate(relation, columns, position))
    name = tick_relation(relation, tick)
    return PlainRule(
        number, name, columns, "now", None, (read,), tick, name, position, to_round=tick
    )


def _aggregate(
    rule: Rule, number: int, label: str, found: list[Aggregation]
) -> tuple[str, tuple[Term, ...]]:
    source = f"{rule.head.relation}#{number}"
    group: list[Term] = [t for t in rule.head.terms if not isinstance(t, Aggregate)]
    layout: list[tuple[int, str | None]] = []
    values: list[Term] = []
    seen = 0
    for term in rule.head.terms:
        if isinstance(term, Aggregate):
            layout.append((len(group) + len(values), term.function))
            values.append(Variable(term.variable))
        else:
            layout.append((seen, None))
            seen += 1
    found.append(Aggregation(rule.head.relation, source, tuple(layout), label, rule.position))
    return source, (*group, *values)


def _body(rule: Rule, ticks: set[tuple[str, int]]) -> tuple[tuple[BodyTerm | Comparison, ...], int]:
    body: list[BodyTerm | Comparison] = []
    from_round = 1
    for part in rule.body:
        if isinstance(part, Comparison):
            body.append(part)
            continue
        predicate = part.predicate
        relation = predicate.relation
        if part.tick is not None and relation != CRASH:
            ticks.add((relation, part.tick))
            relation = tick_relation(relation, part.tick)
        from_round = max(from_round, part.tick or 1)
        terms: list[Term] = []
        for term in predicate.terms:
            if isinstance(term, Arithmetic):
                fresh = Variable(f"?{len(body)}")
                body.append(Comparison("==", fresh, term, predicate.position))
                term = fresh
            terms.append(term)
        body.append(BodyTerm(Predicate(relation, tuple(terms), predicate.position), part.negated))
    return tuple(body), from_round


def reads(lowered: Lowered, relation: str) -> bool:
    """Whether any rule reads a relation."""
    return any(t.predicate.relation == relation for r in lowered.rules for t in r.reads)


def uses_clock(lowered: Lowered) -> bool:
    """Whether deliveries themselves are facts of this program."""
    return reads(lowered, CLOCK) or any(r == CLOCK for r, _ in lowered.ticks)
