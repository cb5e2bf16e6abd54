"""The text of a rule's join: nested loops over indexed tables, as a Python function.

The text is made of slot numbers and fixed words only; names and constants of the program reach the
function as values, so that no program can put code into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bettong.lineage.dedalus import arithmetic
from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.lowering import PlainRule
from bettong.lineage.dedalus.syntax import (
    Arithmetic,
    BodyTerm,
    Comparison,
    Constant,
    Term,
    Variable,
    variables,
)
from bettong.lineage.dedalus.tables import NO_ROWS, Columns, Table

# CPython nests no more than 20 blocks in one function.
MAX_LOOPS = 17

_OPERATORS = {"+": "plus", "-": "minus", "*": "times", "/": "over"}
_COMPARE = {
    "==": "{a} == {b}",
    "!=": "{a} != {b}",
    "<": "less({a}, {b})",
    ">": "less({b}, {a})",
    "<=": "not less({b}, {a})",
    ">=": "not less({a}, {b})",
}

Found = list[Any]
Join = Callable[[Mapping[str, Table], Mapping[str, Table], Any, Found, bool], None]


@dataclass(slots=True)
class Plan:
    """The text of one join, with the positive term ``first`` (or none) read from the delta."""

    rule: PlainRule
    first: int | None
    indexes: set[tuple[str, Columns]] = field(default_factory=set)
    negated: dict[int, tuple[str, Columns]] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _depth: int = 1
    _slots: dict[str, str] = field(default_factory=dict)
    _constants: list[Any] = field(default_factory=list)
    _keys: dict[int, str] = field(default_factory=dict)
    _loops: int = 0

    def functions(self) -> tuple[Join, Join]:
        body = self._text()
        return self._compile(body, traced=False), self._compile(body, traced=True)

    # -- the order of terms ------------------------------------------------------------------

    def _text(self) -> list[str]:
        positive = [t for t in self.rule.reads if not t.negated]
        waiting: list[tuple[int, BodyTerm | Comparison]] = list(enumerate(self.rule.body))
        rows = {id(t): f"r{i}" for i, t in enumerate(positive)}
        if self.first is not None:
            start = positive[self.first]
            waiting = [w for w in waiting if w[1] is not start]
            self._scan(start, f"r{self.first}", delta=True)
        while waiting:
            ready = [w for w in waiting if self._ready(w[1])]
            if not ready:
                # The term with most columns known narrows the search most.
                terms = [w for w in waiting if isinstance(w[1], BodyTerm) and not w[1].negated]
                ready = [max(terms, key=lambda w: len(self._known(w[1])))]
            for number, part in ready:
                if isinstance(part, Comparison):
                    self._compare(part)
                elif part.negated:
                    self._refuse(number, part)
                else:
                    self._scan(part, rows[id(part)])
            waiting = [w for w in waiting if w not in ready]
        return self._lines

    def _known(self, part: BodyTerm | Comparison) -> list[int]:
        assert isinstance(part, BodyTerm)
        return [
            i
            for i, t in enumerate(part.predicate.terms)
            if isinstance(t, Constant) or (isinstance(t, Variable) and t.name in self._slots)
        ]

    def _ready(self, part: BodyTerm | Comparison) -> bool:
        if isinstance(part, BodyTerm):
            if not part.negated:
                return False
            needed = set().union(*(variables(t) for t in part.predicate.terms))
            return needed <= self._slots.keys()
        left, right = variables(part.left), variables(part.right)
        if (left | right) <= self._slots.keys():
            return True
        return part.op == "==" and (
            (isinstance(part.left, Variable) and right <= self._slots.keys())
            or (isinstance(part.right, Variable) and left <= self._slots.keys())
        )

    # -- lines -------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._lines.append(" " * self._depth + text)

    def _constant(self, value: Any) -> str:
        self._constants.append(value)
        return f"K[{len(self._constants) - 1}]"

    def _value(self, term: Term) -> str:
        if isinstance(term, Variable):
            return self._slots[term.name]
        if isinstance(term, Constant):
            return self._constant(term.value)
        assert isinstance(term, Arithmetic)
        op = _OPERATORS[term.op]
        return f"{op}({self._value(term.left)}, {self._value(term.right)})"

    def _key(self, terms: tuple[Any, ...], known: list[int]) -> str:
        values = [self._value(terms[i]) for i in known]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def _scan(self, term: BodyTerm, row: str, *, delta: bool = False) -> None:
        terms, relation = term.predicate.terms, term.predicate.relation
        known = [] if delta else self._known(term)
        table = f"T[{self._constant(relation)}]"
        if len(known) == len(terms):
            values = ", ".join(self._value(t) for t in terms)
            self._line(f"{row} = ({values},)")
            self._line(f"if {row} not in {table}.rows: {self._skip()}")
            return
        if known:
            columns = tuple(known)
            self.indexes.add((relation, columns))
            source = f"{table}.indexes[{columns!r}].get({self._key(terms, known)}, NO_ROWS)"
        else:
            source = "D" if delta else f"{table}.rows"
        self._loops += 1
        if self._loops > MAX_LOOPS:
            raise DedalusError(
                self.rule.position,
                f"the body of {self.rule.relation} joins more than {MAX_LOOPS} relations: "
                "split the rule",
            )
        self._line(f"for {row} in {source}:")
        self._depth += 1
        for i, t in enumerate(terms):
            if i in known:
                continue
            if isinstance(t, Constant):
                self._line(f"if {row}[{i}] != {self._constant(t.value)}: continue")
            elif isinstance(t, Variable):
                if t.name in self._slots:
                    self._line(f"if {row}[{i}] != {self._slots[t.name]}: continue")
                else:
                    slot = self._slots[t.name] = f"v{len(self._slots)}"
                    self._line(f"{slot} = {row}[{i}]")

    def _skip(self) -> str:
        return "continue" if self._loops else "return"

    def _guarded(self, text: str) -> None:
        self._line(f"try: {text}")
        self._line("except BadArithmeticError:")
        self._line(" if strict: raise")
        self._line(f" {self._skip()}")

    def _compare(self, part: Comparison) -> None:
        free = (variables(part.left) | variables(part.right)) - self._slots.keys()
        if free:
            name = free.pop()
            of = part.right if isinstance(part.left, Variable) and part.left.name == name else None
            value = self._value(part.left if of is None else of)
            slot = self._slots[name] = f"v{len(self._slots)}"
            self._guarded(f"{slot} = {value}")
            return
        test = _COMPARE[part.op].format(a=self._value(part.left), b=self._value(part.right))
        if "(" in test:
            self._guarded(f"ok = {test}")
            test = "ok"
        self._line(f"if not ({test}): {self._skip()}")

    def _refuse(self, number: int, term: BodyTerm) -> None:
        terms, relation = term.predicate.terms, term.predicate.relation
        known = self._known(term)
        table = f"N[{self._constant(relation)}]"
        key = f"n{number}"
        self._keys[number] = key
        if len(known) == len(terms):
            values = ", ".join(self._value(t) for t in terms)
            self._line(f"{key} = ({values},)")
            self._line(f"if {key} in {table}.rows: {self._skip()}")
        elif known:
            self.indexes.add((relation, tuple(known)))
            self._line(f"{key} = {self._key(terms, known)}")
            self._line(f"if {key} in {table}.indexes[{tuple(known)!r}]: {self._skip()}")
        else:
            self._line(f"{key} = None")
            self._line(f"if {table}.rows: {self._skip()}")
        self.negated[number] = (relation, tuple(known))

    # -- functions ---------------------------------------------------------------------------

    def _compile(self, body: list[str], *, traced: bool) -> Join:
        constants = list(self._constants)
        self._constants = constants
        lines = ["def join(T, N, D, found, strict):", *body]
        kept, self._lines = self._lines, lines
        columns = ", ".join(self._value(c) for c in self.rule.columns)
        location = "None" if self.rule.location is None else self._value(self.rule.location)
        if "(" in columns:
            self._guarded(f"head = ({columns},)")
        else:
            self._line(f"head = ({columns},)")
        if traced:
            read = "".join(f"r{i}, " for i, t in enumerate(self._positive()))
            missed = "".join(f"{self._keys[n]}, " for n in sorted(self._keys))
            self._line(f"found.append(({location}, head, ({read}), ({missed})))")
        else:
            self._line(f"found.append(({location}, head))")
        self._lines = kept
        scope = {
            "K": tuple(constants),
            "NO_ROWS": NO_ROWS,
            "BadArithmeticError": arithmetic.BadArithmeticError,
            "less": arithmetic.less,
            **{name: getattr(arithmetic, name) for name in _OPERATORS.values()},
        }
        exec(_code("\n".join(lines)), scope)  # noqa: S102 - see the module's docstring
        join: Join = scope["join"]
        return join

    def _positive(self) -> list[BodyTerm]:
        return [t for t in self.rule.reads if not t.negated]


@lru_cache(maxsize=2000)
def _code(text: str) -> Any:
    return compile(text, "<dedalus rule>", "exec")
