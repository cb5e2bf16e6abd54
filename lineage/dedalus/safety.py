"""Safe rules: every variable gets its value from a positive body term."""

from __future__ import annotations

from bettong.lineage.dedalus.errors import DedalusError, hint
from bettong.lineage.dedalus.syntax import (
    Aggregate,
    Arithmetic,
    Comparison,
    Position,
    Rule,
    Term,
    Variable,
    Wildcard,
    variables,
)


def check_safety(rule: Rule) -> None:
    """Raise DedalusError when a variable of the rule may take any value, or ``_`` must be one."""
    bound = _bound(rule)
    for term in rule.head.terms:
        _no_wildcard(term, rule.position, "the head of a rule")
        _require(term, bound, rule.position, f"the head of {rule.head.relation}")
    for part in rule.body:
        if isinstance(part, Comparison):
            for side in (part.left, part.right):
                _no_wildcard(side, part.position, "a comparison")
                _require(side, bound, part.position, f"the comparison {part}")
            continue
        place = part.predicate.position
        for term in part.predicate.terms:
            if isinstance(term, Arithmetic):
                _no_wildcard(term, place, "arithmetic")
            if part.negated or isinstance(term, Arithmetic):
                _require(term, bound, place, str(part), negated=part.negated)
    if not rule.body_terms:
        raise DedalusError(rule.position, "a rule's body names at least one relation")
    if rule.timing == "async":
        if isinstance(rule.head.terms[0], Aggregate):
            raise DedalusError(
                rule.position, "the first column of an @async head is the receiver, no aggregate"
            )
        where = rule.body_terms[0].predicate
        if isinstance(where.terms[0], Wildcard):
            raise DedalusError(
                where.position,
                f"an @async rule must name its sender: the first column of {where} is '_'",
            )


def _bound(rule: Rule) -> set[str]:
    found = {
        term.name
        for part in rule.body_terms
        if not part.negated
        for term in part.predicate.terms
        if isinstance(term, Variable)
    }
    # X == expression gives X its value; one such may wait for another.
    waiting = [p for p in rule.body if isinstance(p, Comparison) and p.op == "=="]
    while waiting:
        rest = []
        for part in waiting:
            for one, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(one, Variable) and variables(other) <= found:
                    found.add(one.name)
                    break
            else:
                rest.append(part)
        if len(rest) == len(waiting):
            return found
        waiting = rest
    return found


def _require(
    term: Term, bound: set[str], position: Position, where: str, *, negated: bool = False
) -> None:
    free = sorted(variables(term) - bound)
    if free:
        advice = " (write _ if any value will do)" if negated and isinstance(term, Variable) else ""
        raise DedalusError(
            position,
            f"unsafe variable '{free[0]}' in {where}: no positive body term gives it a value"
            + (advice or hint(free[0], bound)),
        )


def _no_wildcard(term: Term, position: Position, where: str) -> None:
    if isinstance(term, Wildcard):
        raise DedalusError(position, f"'_' cannot stand in {where}: name a variable")
    if isinstance(term, Arithmetic):
        _no_wildcard(term.left, position, "arithmetic")
        _no_wildcard(term.right, position, "arithmetic")
