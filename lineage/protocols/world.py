"""All nodes in the last round, as pre- and postconditions see them, and the goals that hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from bettong.lineage.errors import BettongError
from bettong.lineage.protocols.local import Arguments, Call, Fact, LocalStep, Read, matches
from bettong.lineage.protocols.protocol import (
    Declared,
    Protocol,
    ProtocolError,
    RuleKind,
    failed,
)
from bettong.lineage.protocols.rounds import Judged, as_text

CRASHED = "crashed"


class Everywhere:
    """A relation of all nodes: the first argument of each fact is the node that knows it."""

    __slots__ = ("_call", "_name", "_rows", "_width")

    def __init__(self, name: str, rows: list[Arguments], width: int, call: Call) -> None:
        self._name = name
        self._rows = rows
        self._width = width
        self._call = call

    def _find(self, pattern: Arguments, every: bool) -> tuple[Arguments, ...]:
        if len(pattern) != self._width:
            raise ProtocolError(
                f"{self._call.rule}: a pattern of {self._name} takes a node and "
                f"{self._width - 1} arguments, not {pattern!r}"
            )
        found = tuple(row for row in self._rows if matches(pattern, row))
        self._call.reads.append(Read(self._name, pattern, found, every))
        return found

    def holds(self, *pattern: Any) -> bool:
        """Whether a node (``...``: any) knows a fact with these arguments (``...``: any)."""
        return bool(self._find(pattern, every=False))

    def rows(self, *pattern: Any) -> list[Arguments]:
        """All facts that fit, each with its node first."""
        return list(self._find(pattern or (...,) * self._width, every=True))


class World:
    """What all nodes know in the last round."""

    __slots__ = ("_crashed", "_relations", "call")

    def __init__(
        self,
        rows: Mapping[str, list[Arguments]],
        declared: Declared,
        crashed: frozenset[str],
        call: Call,
    ) -> None:
        self.call = call
        self._crashed = crashed
        self._relations = {
            name: Everywhere(name, rows.get(name, []), len(relation.columns) + 1, call)
            for name, relation in declared.relations.items()
        }

    def __getattr__(self, name: str) -> Everywhere:
        try:
            return self._relations[name]
        except KeyError:
            known = ", ".join(self._relations)
            raise ProtocolError(
                f"{self.call.rule} uses world.{name}, but the relations are: {known}"
            ) from None

    def crashed(self, node: str) -> bool:
        """Whether the node crashes in any round of this run."""
        found = node in self._crashed
        self.call.reads.append(Read(CRASHED, (node,), ((node,),) if found else ()))
        return found


def text(goal: Any) -> str:
    """A goal as text: its values joined by commas; raises ProtocolError for an answer that is
    none, such as a truth value: a goal is there, or it is not."""
    if goal is None or isinstance(goal, bool):
        raise ProtocolError(
            f"a condition yields {goal!r}, which names no goal: yield what must hold, such as "
            "(node, payload), where it holds, and nothing where it does not"
        )
    return as_text(goal if isinstance(goal, tuple) else (goal,))


def condition_calls(
    protocol: Protocol,
    declared: Declared,
    kind: RuleKind,
    steps: Mapping[str, LocalStep],
    crashed: frozenset[str],
) -> list[tuple[Call, list[tuple[str, int]]]]:
    """Every call of a condition, with the goals it yields: their texts, and after how many reads.

    A call that yields nothing has read something too: that is why it does not.
    """
    rows: dict[str, list[Arguments]] = {}
    for node, step in steps.items():
        for name, arguments in sorted(step.facts, key=repr):
            rows.setdefault(name, []).append((node, *arguments))
    found = []
    for condition in declared.of_kind(kind):
        for chosen in product(*(rows.get(r, []) for r in condition.relations)):
            triggers: tuple[Fact, ...] = tuple(zip(condition.relations, chosen, strict=True))
            call = Call(condition.name, triggers)
            world = World(rows, declared, crashed, call)
            values = (value for row in chosen for value in row)
            try:
                goals = condition.function(protocol, world, *values)
                if isinstance(goals, str | bytes):
                    raise ProtocolError(
                        f"@{kind}condition {condition.name} returns text: yield its goals"
                    )
                found.append((call, [(text(goal), len(call.reads)) for goal in goals]))
            except BettongError:
                raise
            except Exception as e:
                raise failed(f"@{kind}condition {condition.name}, which yields goals", e) from e
    return found


def goal_calls(
    protocol: Protocol,
    declared: Declared,
    kind: RuleKind,
    steps: Mapping[str, LocalStep],
    crashed: frozenset[str],
) -> list[tuple[Call, str, int]]:
    """Every goal that holds: the call that says so, its text, and after how many reads."""
    calls = condition_calls(protocol, declared, kind, steps, crashed)
    return [(call, goal, after) for call, goals in calls for goal, after in goals]


def judged(
    protocol: Protocol,
    declared: Declared,
    steps: Mapping[str, LocalStep],
    crashed: frozenset[str],
) -> Judged:
    """The goals of pre- and postcondition that hold."""
    return Judged(
        frozenset(g for _, g, _ in goal_calls(protocol, declared, "pre", steps, crashed)),
        frozenset(g for _, g, _ in goal_calls(protocol, declared, "post", steps, crashed)),
    )
