"""Rules, compiled: all ways in which a rule's body holds for given tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bettong.lineage.dedalus import arithmetic
from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.lowering import PlainRule
from bettong.lineage.dedalus.plan import Found, Join, Plan
from bettong.lineage.dedalus.tables import Columns, Row, Table


@dataclass(frozen=True, slots=True)
class Match:
    """One way in which a rule's body holds.

    Attributes:
        location: where the rule fires, or None when that does not matter.
        row: the head.
        read: the row of each positive body term, in the rule's order.
        missed: the key of each negated body term, in the rule's order.
    """

    location: Any
    row: Row
    read: tuple[Row, ...]
    missed: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with its functions.

    Attributes:
        positive: relations of the positive body terms, in order.
        negated: relation and key columns of the negated body terms, in order.
        indexes: for each relation the columns by which the rule looks rows up.
    """

    rule: PlainRule
    positive: tuple[str, ...]
    negated: tuple[tuple[str, Columns], ...]
    indexes: frozenset[tuple[str, Columns]]
    _heads: Join
    _matches: Join
    _deltas: Mapping[int, tuple[Join, Join]]

    def heads(
        self, tables: Mapping[str, Table], delta: tuple[int, list[Row]] | None = None
    ) -> list[tuple[Any, Row]]:
        """Pairs (location, head row) that hold; with ``delta``, only by those rows of that term."""
        join = self._heads if delta is None else self._deltas[delta[0]][0]
        found: Found = []
        self._run(join, tables, tables, delta, found, True)
        return found

    def matches(
        self,
        tables: Mapping[str, Table],
        certain: Mapping[str, Table],
        delta: tuple[int, list[Row]] | None = None,
    ) -> list[Match]:
        """All matches where ``notin`` is refuted by ``certain`` rows only."""
        join = self._matches if delta is None else self._deltas[delta[0]][1]
        found: Found = []
        self._run(join, tables, certain, delta, found, False)
        return [Match(*m) for m in found]

    def _run(
        self,
        join: Join,
        tables: Mapping[str, Table],
        certain: Mapping[str, Table],
        delta: tuple[int, list[Row]] | None,
        found: Found,
        strict: bool,
    ) -> None:
        try:
            join(tables, certain, delta[1] if delta else None, found, strict)
        except arithmetic.BadArithmeticError as e:
            raise DedalusError(self.rule.position, f"{e}, in {self.rule.label}") from e


def compile_rule(rule: PlainRule, recursive: frozenset[str] = frozenset()) -> CompiledRule:
    """Compile a rule; ``recursive`` are the relations that are filled together with its head."""
    positive = [t for t in rule.reads if not t.negated]
    plans = [Plan(rule, None)]
    starts = [i for i, t in enumerate(positive) if t.predicate.relation in recursive]
    plans += [Plan(rule, i) for i in starts]
    joins = [plan.functions() for plan in plans]
    indexes = frozenset(index for plan in plans for index in plan.indexes)
    return CompiledRule(
        rule,
        tuple(t.predicate.relation for t in positive),
        tuple(plans[0].negated[n] for n in sorted(plans[0].negated)),
        indexes,
        *joins[0],
        dict(zip(starts, joins[1:], strict=True)),
    )
