"""Text to syntax tree, by recursive descent; the first mistake ends it with one clear error."""

from __future__ import annotations

from bettong.lineage.dedalus.errors import DedalusError, hint
from bettong.lineage.dedalus.lexer import Token, tokens
from bettong.lineage.dedalus.syntax import (
    AGGREGATES,
    COMPARISONS,
    Aggregate,
    Arithmetic,
    BodyTerm,
    Clause,
    Comparison,
    Constant,
    Expression,
    Fact,
    Include,
    Position,
    Predicate,
    Rule,
    Term,
    Timing,
    Variable,
    Wildcard,
)

# Deeper or longer expressions are no protocols; the limits keep the parser's stack bounded.
MAX_NESTING = 40
MAX_OPERATORS = 200
MAX_COLUMNS = 100
MAX_BODY = 100
MAX_TICK = 100_000


def parse(text: str, file: str) -> list[Clause]:
    """The clauses of one program text; raises DedalusError at the first mistake."""
    return _Parser(text, file).clauses()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._tokens = tokens(text, file)
        self._token = next(self._tokens)
        self._after: Token | None = None
        self._operators = 0

    # -- tokens ------------------------------------------------------------------------------

    def _next(self) -> Token:
        token = self._token
        if self._after is not None:
            self._token, self._after = self._after, None
        elif token.kind != "end":
            self._token = next(self._tokens)
        return token

    def _peek(self) -> Token:
        if self._after is None:
            self._after = next(self._tokens) if self._token.kind != "end" else self._token
        return self._after

    def _here(self) -> Position:
        return Position(self._file, self._token.line)

    def _is(self, *marks: str) -> bool:
        return self._token.kind == "mark" and self._token.text in marks

    def _is_name(self, name: str) -> bool:
        return self._token.kind == "name" and self._token.text == name

    def _fail(self, expected: str) -> DedalusError:
        hint = "; equality is written ==" if self._is("=") else ""
        return DedalusError(self._here(), f"expected {expected}, found {self._token}{hint}")

    def _expect(self, mark: str, where: str) -> Token:
        if not self._is(mark):
            raise self._fail(f"'{mark}' {where}")
        return self._next()

    # -- clauses -----------------------------------------------------------------------------

    def clauses(self) -> list[Clause]:
        found: list[Clause] = []
        while self._token.kind != "end":
            found.append(self._clause())
        return found

    def _clause(self) -> Clause:
        if self._is_name("include") and self._peek().kind == "string":
            position = self._here()
            self._next()
            path = self._next().text[1:-1]
            self._expect(";", "after an include")
            return Include(path, position)
        if self._is_name("notin"):
            raise DedalusError(self._here(), "'notin' belongs in a rule's body, not in its head")
        head = self._predicate(in_head=True)
        suffix = self._suffix()
        if self._is(";"):
            self._next()
            return _fact(head, suffix)
        if not self._is(":-"):
            raise self._fail(f"':-' or ';' after {head.relation}(…)")
        self._next()
        if isinstance(suffix, int):
            raise DedalusError(
                head.position,
                f"a rule's head holds now, @next or @async; only facts are given @{suffix}",
            )
        body = [self._body_term()]
        while self._is(","):
            self._next()
            if len(body) == MAX_BODY:
                raise DedalusError(head.position, f"a body of more than {MAX_BODY} terms")
            body.append(self._body_term())
        if not self._is(";"):
            raise self._fail("',' or ';' after a body term")
        self._next()
        return Rule(head, suffix or "now", tuple(body))

    def _suffix(self) -> Timing | int | None:
        if not self._is("@"):
            return None
        self._next()
        if self._token.kind == "number":
            tick = int(self._token.text)
            if not 1 <= tick <= MAX_TICK:
                raise DedalusError(self._here(), f"rounds count from 1 to {MAX_TICK}")
            self._next()
            return tick
        if self._is_name("next"):
            self._next()
            return "next"
        if self._is_name("async"):
            self._next()
            return "async"
        near = hint(self._token.text, ("next", "async")) if self._token.kind == "name" else ""
        raise DedalusError(
            self._here(), f"expected next, async or a round after '@', found {self._token}{near}"
        )

    def _body_term(self) -> BodyTerm | Comparison:
        negated = self._is_name("notin")
        if negated:
            self._next()
        if negated or (self._token.kind == "name" and self._peek().text == "("):
            predicate = self._predicate(in_head=False)
            at = self._here()
            suffix = self._suffix()
            if isinstance(suffix, str):
                raise DedalusError(at, f"@{suffix} belongs at a rule's head")
            return BodyTerm(predicate, negated, suffix)
        position = self._here()
        self._operators = 0
        left = self._sum(0)
        if self._token.kind != "mark" or self._token.text not in COMPARISONS:
            raise self._fail(f"a comparison ({' '.join(COMPARISONS)}) or a relation")
        op = self._next().text
        return Comparison(op, left, self._sum(0), position)

    def _predicate(self, *, in_head: bool) -> Predicate:
        if self._token.kind != "name":
            raise self._fail("a relation's name")
        position = self._here()
        name = self._next().text
        self._expect("(", f"after the relation's name '{name}'")
        terms: list[Term] = []
        while not terms or self._is(","):
            if terms:
                self._next()
            if len(terms) == MAX_COLUMNS:
                raise DedalusError(position, f"{name} has more than {MAX_COLUMNS} columns")
            terms.append(self._term(in_head=in_head))
        if not self._is(")"):
            raise self._fail(f"',' or ')' in the columns of {name}")
        self._next()
        return Predicate(name, tuple(terms), position)

    # -- terms -------------------------------------------------------------------------------

    def _term(self, *, in_head: bool) -> Term:
        if self._token.kind == "name" and self._peek().text == "<":
            position = self._here()
            function = self._next().text
            self._next()
            if function not in AGGREGATES:
                raise DedalusError(
                    position,
                    f"unknown aggregate '{function}'; there are {', '.join(AGGREGATES)}"
                    + hint(function, AGGREGATES),
                )
            if not in_head:
                raise DedalusError(position, "an aggregate belongs in a rule's head")
            if self._token.kind != "name" or self._token.text == "_":
                raise self._fail(f"a variable in {function}<…>")
            variable = self._next().text
            self._expect(">", f"after {function}<{variable}")
            return Aggregate(function, variable)
        self._operators = 0
        return self._sum(0)

    def _sum(self, depth: int) -> Expression:
        left = self._product(depth)
        while self._is("+", "-"):
            op = self._operator()
            left = Arithmetic(op, left, self._product(depth))
        return left

    def _product(self, depth: int) -> Expression:
        left = self._factor(depth)
        while self._is("*", "/"):
            op = self._operator()
            left = Arithmetic(op, left, self._factor(depth))
        return left

    def _operator(self) -> str:
        self._operators += 1
        if self._operators > MAX_OPERATORS:
            raise DedalusError(self._here(), f"more than {MAX_OPERATORS} operators in one term")
        return self._next().text

    def _factor(self, depth: int) -> Expression:
        if self._is("(", "-") and depth == MAX_NESTING:
            raise DedalusError(self._here(), f"an expression nested deeper than {MAX_NESTING}")
        if self._is("("):
            self._next()
            inner = self._sum(depth + 1)
            self._expect(")", "after an expression")
            return inner
        if self._is("-"):
            self._next()
            negated = self._factor(depth + 1)
            if isinstance(negated, Constant) and isinstance(negated.value, int):
                return Constant(-negated.value)
            return Arithmetic("-", Constant(0), negated)
        if self._token.kind == "number":
            return Constant(int(self._next().text))
        if self._token.kind == "string":
            return Constant(self._next().text[1:-1])
        if self._token.kind == "name":
            name = self._next().text
            return Wildcard() if name == "_" else Variable(name)
        raise self._fail("a variable, a number, a quoted string or '_'")


def _fact(head: Predicate, suffix: Timing | int | None) -> Fact:
    if not isinstance(suffix, int):
        raise DedalusError(
            head.position, f"a fact needs the round in which it holds: {head.relation}(…)@1;"
        )
    values = []
    for term in head.terms:
        if not isinstance(term, Constant):
            raise DedalusError(
                head.position,
                f"a fact's columns are numbers and quoted strings, but '{term}' is neither",
            )
        values.append(term.value)
    return Fact(head.relation, tuple(values), suffix, head.position)
