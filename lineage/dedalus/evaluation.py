"""One round: from the facts it begins with to everything that holds in it and what goes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bettong.lineage.dedalus import aggregates
from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.joins import CompiledRule, compile_rule
from bettong.lineage.dedalus.lowering import Aggregation, Lowered, PlainRule
from bettong.lineage.dedalus.strata import Stratum
from bettong.lineage.dedalus.tables import Columns, Row, Table

# More in one round is a program that counts without end.
MAX_ROWS = 100_000

Tables = dict[str, Table]
Run = Callable[[CompiledRule, tuple[int, list[Row]] | None], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class CompiledStratum:
    """A stratum with its rules compiled."""

    stratum: Stratum
    rules: tuple[CompiledRule, ...]
    aggregations: tuple[Aggregation, ...]


class RuleSet:
    """Compiled rules for some of a program's relations.

    ``within`` are the relations to fill in a round, ``outward`` those that @next and @async rules
    are to fill for later ones.

    Attributes:
        strata: in the order in which they are filled.
        inductive: the @next rules.
        messages: the @async rules.
    """

    def __init__(
        self,
        lowered: Lowered,
        strata: Iterable[Stratum],
        within: frozenset[str],
        outward: frozenset[str],
    ) -> None:
        self.strata = tuple(
            CompiledStratum(
                s,
                tuple(
                    compile_rule(r, s.relations if s.recursive else frozenset())
                    for r in s.rules
                    if r.relation in within
                ),
                tuple(a for a in s.aggregations if a.relation in within),
            )
            for s in strata
            if s.relations & within
        )
        later = [r for r in lowered.rules if r.relation in outward]
        self.inductive = tuple(compile_rule(r) for r in later if r.timing == "next")
        self.messages = tuple(compile_rule(r) for r in later if r.timing == "async")
        self._indexes: dict[str, set[Columns]] = {relation: set() for relation in within}
        for rule in self._all_rules():
            for relation, columns in rule.indexes:
                self._indexes.setdefault(relation, set()).add(columns)
            for relation in (*rule.positive, *(r for r, _ in rule.negated)):
                self._indexes.setdefault(relation, set())

    def _all_rules(self) -> Iterable[CompiledRule]:
        for stratum in self.strata:
            yield from stratum.rules
        yield from self.inductive
        yield from self.messages

    def empty(self) -> Tables:
        """A table for each relation, indexed as the rules need it."""
        return {relation: Table(columns) for relation, columns in self._indexes.items()}

    def fill(self, tables: Tables, time: int) -> None:
        """Add everything that holds in a round to the tables of what it begins with."""
        for compiled in self.strata:
            for aggregation in compiled.aggregations:
                table = tables[aggregation.relation]
                rows = tables[aggregation.source].rows
                for group, some in aggregates.groups(aggregation, rows).items():
                    made = aggregates.outcome(aggregation, some)
                    table.add(aggregates.head(aggregation, group, made))
            close(
                compiled,
                tables,
                time,
                lambda rule, delta: [row for _, row in rule.heads(tables, delta)],
            )


def close(compiled: CompiledStratum, tables: Tables, time: int, run: Run) -> None:
    """Run a stratum's rules until they add no row (semi-naive where they are recursive)."""
    new: dict[str, list[Row]] = {}
    for rule in compiled.rules:
        if rule.rule.active(time):
            _add(tables, rule.rule, run(rule, None), new)
    while new and compiled.stratum.recursive:
        delta, new = new, {}
        for rule in compiled.rules:
            if rule.rule.active(time):
                for i, relation in enumerate(rule.positive):
                    if relation in delta:
                        _add(tables, rule.rule, run(rule, (i, delta[relation])), new)


def _add(tables: Tables, rule: PlainRule, rows: Iterable[Row], new: dict[str, list[Row]]) -> None:
    table = tables[rule.relation]
    for row in rows:
        if table.add(row):
            new.setdefault(rule.relation, []).append(row)
    if len(table.rows) > MAX_ROWS:
        raise DedalusError(
            rule.position,
            f"{rule.relation} grows beyond {MAX_ROWS:,} facts in one round: "
            f"the rule seems to feed itself without end",
        )
