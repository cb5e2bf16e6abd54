"""The syntax tree of a Dedalus program (Alvaro et al., *Dedalus: Datalog in Time and Space*,
2010), in the form that Molly reads: the first column of a relation is the node where a fact is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple

Value = str | int
Timing = OneOf["now", "next", "async"]

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
AGGREGATES = ("count", "min", "max", "sum")


class Position(NamedTuple):
    """A line of a program file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Variable:
    """Any bare name in a column or an expression."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``_``: any value, each time another one."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Constant:
    """A quoted string or an integer."""

    value: Value

    def __str__(self) -> str:
        return f'"{self.value}"' if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right`` over integers; ``/`` rounds towards zero."""

    op: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``count<X>`` and its like, in a rule's head."""

    function: str
    variable: str

    def __str__(self) -> str:
        return f"{self.function}<{self.variable}>"


Expression = Variable | Wildcard | Constant | Arithmetic
Term = Expression | Aggregate


@dataclass(frozen=True, slots=True)
class Predicate:
    """A relation's name applied to columns."""

    relation: str
    terms: tuple[Term, ...]
    position: Position

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class BodyTerm:
    """A predicate in a rule's body, perhaps under ``notin``, perhaps of one given round."""

    predicate: Predicate
    negated: bool = False
    tick: int | None = None

    def __str__(self) -> str:
        tick = "" if self.tick is None else f"@{self.tick}"
        return f"{'notin ' if self.negated else ''}{self.predicate}{tick}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left op right`` in a rule's body."""

    op: str
    left: Expression
    right: Expression
    position: Position

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class Rule:
    """``head@timing :- body``."""

    head: Predicate
    timing: Timing
    body: tuple[BodyTerm | Comparison, ...]

    @property
    def position(self) -> Position:
        """Where its head is."""
        return self.head.position

    @property
    def body_terms(self) -> tuple[BodyTerm, ...]:
        """The body's predicates, in order."""
        return tuple(b for b in self.body if isinstance(b, BodyTerm))

    def __str__(self) -> str:
        timing = "" if self.timing == "now" else f"@{self.timing}"
        return f"{self.head}{timing} :- {', '.join(map(str, self.body))};"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that holds in one round, given from outside."""

    relation: str
    values: tuple[Value, ...]
    tick: int
    position: Position


@dataclass(frozen=True, slots=True)
class Include:
    """``include "file";``"""

    path: str
    position: Position


Clause = Rule | Fact | Include


def variables(term: Term) -> set[str]:
    """Names of the variables in a term."""
    if isinstance(term, Variable):
        return {term.name}
    if isinstance(term, Arithmetic):
        return variables(term.left) | variables(term.right)
    if isinstance(term, Aggregate):
        return {term.variable}
    return set()
