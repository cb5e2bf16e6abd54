"""A naive reference of Dedalus: every rule against every fact, again and again, until nothing new.

It shares the parser with the real thing, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bettong.lineage.dedalus.loader import Program
from bettong.lineage.dedalus.syntax import (
    Aggregate,
    Arithmetic,
    BodyTerm,
    Constant,
    Predicate,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from bettong.lineage.faults import FaultSet
from bettong.lineage.protocols.failure_spec import FailureSpec

Row = tuple[Value, ...]
Known = set[tuple[str, Row]]
Binding = dict[str, Value]


def value(term: Term, binding: Binding) -> Value:
    if isinstance(term, Variable):
        return binding[term.name]
    if isinstance(term, Constant):
        return term.value
    assert isinstance(term, Arithmetic)
    a, b = value(term.left, binding), value(term.right, binding)
    assert isinstance(a, int) and isinstance(b, int)
    return {"+": a + b, "-": a - b, "*": a * b, "/": int(a / b) if b else 0}[term.op]


def unify(predicate: Predicate, row: Row, binding: Binding) -> Binding | None:
    found = dict(binding)
    for term, seen in zip(predicate.terms, row, strict=True):
        if isinstance(term, Wildcard):
            continue
        if isinstance(term, Variable) and term.name not in found:
            found[term.name] = seen
        elif value(term, found) != seen:
            return None
    return found


def compare(op: str, a: Value, b: Value) -> bool:
    if op == "==":
        return a == b
    if op == "!=":
        return a != b
    low, same = a < b, a == b  # type: ignore[operator]
    return {"<": low, "<=": low or same, ">": not low and not same, ">=": not low}[op]


class Reference:
    """All facts of all rounds under one schedule (send-stop)."""

    def __init__(self, program: Program, spec: FailureSpec, schedule: FaultSet) -> None:
        self.program = program
        self.spec = spec
        self.lost = {(a, b, t) for a, b, t in self._losses(schedule)}
        self.crashes = spec.crash_times(schedule)
        self.rounds: list[Known] = [set() for _ in range(spec.eot + 2)]
        # what aggregates of @next and @async rules will range over, in the round of its arrival
        self.waiting: dict[int, list[tuple[Rule, Binding]]] = {}
        for time in range(1, spec.eot + 1):
            self._round(time)

    def _losses(self, schedule: FaultSet) -> Iterator[tuple[str, str, int]]:
        for id in schedule:
            fault = self.spec.faults[id]
            if "->" in fault.place:
                a, b = fault.place.split("->")
                yield a, b, fault.time

    def _arrives(self, a: Value | None, b: Value, time: int) -> bool:
        if a not in self.spec.nodes or b not in self.spec.nodes:
            return False
        if a == b:
            return True
        return (a, b, time) not in self.lost and self.crashes.get(str(a), time + 1) > time

    def _round(self, time: int) -> None:
        now = self.rounds[time]
        for fact in self.program.facts:
            if fact.tick == time:
                now.add((fact.relation, fact.values))
        for node, at in self.crashes.items():
            for seen in self.spec.nodes:
                now.add(("crash", (seen, node, at)))
        gathered: dict[Rule, list[Binding]] = {}
        for rule, binding in self.waiting.pop(time, []):
            gathered.setdefault(rule, []).append(binding)
        for rule, bindings in gathered.items():
            now |= {(rule.head.relation, row) for row in self._rows(rule, bindings)}
        for level in self._levels():
            while True:
                new = {
                    (rule.head.relation, row) for rule in level for row in self._heads(rule, time)
                } - now
                if not new:
                    break
                now |= new
        for rule in self.program.rules:
            if rule.timing == "now":
                continue
            for binding in self._bindings(rule, time):
                place = self._place(rule, binding)
                there = value(rule.head.terms[0], binding)
                if rule.timing == "next" and place not in (None, *self.spec.nodes):
                    continue
                if rule.timing == "async" and not self._arrives(place, there, time):
                    continue
                self.waiting.setdefault(time + 1, []).append((rule, binding))

    def _place(self, rule: Rule, binding: Binding) -> Value | None:
        first = rule.body_terms[0].predicate.terms[0]
        return None if isinstance(first, Wildcard) else value(first, binding)

    def _levels(self) -> list[list[Rule]]:
        """Deductive rules by how many negations and aggregates lie beneath them."""
        rules = [r for r in self.program.rules if r.timing == "now"]
        level: dict[str, int] = {}
        for _ in range(len(rules) ** 2 + 1):
            for rule in rules:
                strict = any(isinstance(t, Aggregate) for t in rule.head.terms)
                need = [
                    level.get(t.predicate.relation, 0) + (t.negated or strict)
                    for t in rule.body_terms
                ]
                level[rule.head.relation] = max(level.get(rule.head.relation, 0), *need)
        return [
            [r for r in rules if level[r.head.relation] == n]
            for n in range(max(level.values(), default=0) + 1)
        ]

    def _bindings(self, rule: Rule, time: int) -> list[Binding]:
        if any(t.tick is not None and t.tick > time for t in rule.body_terms):
            return []
        found: list[Binding] = [{}]
        for term in rule.body_terms:
            if not term.negated:
                found = [
                    b
                    for binding in found
                    for relation, row in self.rounds[term.tick or time]
                    if relation == term.predicate.relation
                    and (b := unify(term.predicate, row, binding)) is not None
                ]
        return [b for b in found if self._met(rule, b, time)]

    def _met(self, rule: Rule, binding: Binding, time: int) -> bool:
        for part in rule.body:
            if isinstance(part, BodyTerm):
                if part.negated and any(
                    relation == part.predicate.relation
                    and unify(part.predicate, row, binding) is not None
                    for relation, row in self.rounds[part.tick or time]
                ):
                    return False
            elif not compare(part.op, value(part.left, binding), value(part.right, binding)):
                return False
        return True

    def _heads(self, rule: Rule, time: int) -> list[Row]:
        return self._rows(rule, self._bindings(rule, time))

    def _rows(self, rule: Rule, bindings: Sequence[Binding]) -> list[Row]:
        terms = rule.head.terms
        if not any(isinstance(t, Aggregate) for t in terms):
            return [tuple(value(t, b) for t in terms) for b in bindings]
        groups: dict[Row, set[Row]] = {}
        for b in bindings:
            key = tuple(value(t, b) for t in terms if not isinstance(t, Aggregate))
            row = tuple(b[t.variable] for t in terms if isinstance(t, Aggregate))
            groups.setdefault(key, set()).add(row)
        found = []
        for key, rows in groups.items():
            kept, at, made = iter(key), 0, []
            for term in terms:
                if isinstance(term, Aggregate):
                    made.append(aggregate(term.function, [r[at] for r in rows]))
                    at += 1
                else:
                    made.append(next(kept))
            found.append(tuple(made))
        return found


def aggregate(function: str, values: list[Value]) -> Value:
    if function == "count":
        return len(values)
    if function == "sum":
        return sum(v for v in values if isinstance(v, int))
    return min(values) if function == "min" else max(values)  # type: ignore[type-var]
