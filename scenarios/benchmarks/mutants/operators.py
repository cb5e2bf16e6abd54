"""Mistakes that are made in durable code and protocols, put into a module's text one at a time.

A mutant replaces one piece of the text and leaves the rest as it is, so that its diff is short. The
operators are our own: those of cosmic-ray and mutmut change expressions (a comparison, a number, a
flag); what loses data is rather a statement that is missing, comes too early, or gives up quietly.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

_DURABLE = frozenset(
    {
        *("sync", "sync_directory", "flush", "fsync", "append", "note", "release", "close"),
        *("truncate", "write", "rename", "replace", "link", "unlink", "remove", "commit"),
        *("record", "publish", "ack", "forget"),
    }
)
_IDENTITIES = ("id", "number", "epoch", "attempt", "sequence", "first", "tag", "serial")
_MANNERS = frozenset({"daemon", "flush", "force", "strict"})
"""Flags of threads, prints, logs and of checks of what always holds: nothing that is stored or sent
hangs on them."""
SWALLOW = "swallow exception"
_DEEPER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_BOUNDARIES: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one module.

    Attributes:
        id: path, function, operator and the text that is changed; the same as long as these are.
        path: of the module in the package, such as ``engine/storage/log.py``.
        operator: what kind of mistake it is.
        line: where it is, counted from 1.
        statement: the line at which the statement begins whose run runs the mistake.
        start, end: the place in the text that is replaced.
        text: what stands there instead.
    """

    id: str
    path: str
    operator: str
    line: int
    statement: int
    start: int
    end: int
    text: str

    @property
    def kind(self) -> str:
        """The operator; of calls that make something durable, or known to a peer, one name."""
        verb, _, called = self.operator.partition(" ")
        return "delete durable call" if verb == "delete" and called in _DURABLE else self.operator

    @property
    def module(self) -> str:
        """The folder of the package that it is in, or the module where that is a room's root."""
        room, _, rest = self.path.partition("/")
        folder, slash, _ = rest.rpartition("/")
        return f"{room}/{folder}" if slash else f"{room}/{rest}"

    def applied(self, source: str) -> str:
        """The module's text with the mistake in it."""
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        """The mistake as a unified diff."""
        lines = difflib.unified_diff(
            source.splitlines(), self.applied(source).splitlines(), self.path, self.path, "", "", 2
        )
        return "\n".join(line.rstrip("\n") for line in lines)


@dataclass(frozen=True, slots=True)
class _Change:
    operator: str
    node: ast.AST
    until: ast.AST
    text: str
    run: ast.stmt | None = None  # whose run shows the mistake, where it is not the statement


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a statement stands.

    Attributes:
        function: its qualified name.
        gives: whether the function gives anything back.
    """

    function: str
    gives: bool


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    module = _Module(path, source)
    found = sorted(module.mutants(), key=lambda m: (m.start, m.operator, m.text))
    counted: Counter[str] = Counter()
    named = []
    for mutant in found:
        counted[mutant.id] += 1
        number = counted[mutant.id]
        id = mutant.id if number == 1 else f"{mutant.id} #{number}"
        named.append(replace(mutant, id=id))
    return named


class _Module:
    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._bytes = source.encode()
        self._plain = source.isascii()
        self._tree = ast.parse(source)

    def mutants(self) -> Iterator[Mutant]:
        for function, name in _functions(self._tree, ""):
            scope = _Scope(name, _gives(function))
            for body in _bodies(function):
                yield from self._of_body(body, scope, body is function.body)

    def _of_body(self, body: list[ast.stmt], scope: _Scope, outermost: bool) -> Iterator[Mutant]:
        for place, statement in enumerate(body):
            if isinstance(statement, _DEEPER) or _is_docstring(statement):
                continue
            for change in _changes(statement, self._text):
                yield from self._made(change, statement, scope)
            if outermost and place and not scope.gives and not isinstance(statement, ast.Return):
                text = f"return\n{' ' * statement.col_offset}{self._text(statement)}"
                yield from self._made(
                    _Change("return early", statement, statement, text), statement, scope
                )
        for first, second in pairwise(body):
            if _is_action(first) and _is_action(second) and not _are_apart(first, second):
                between = self._between(first, second)
                text = f"{self._text(second)}{between}{self._text(first)}"
                yield from self._made(_Change("swap neighbours", first, second, text), first, scope)

    def _made(self, change: _Change, statement: ast.stmt, scope: _Scope) -> Iterator[Mutant]:
        start, end = self._offset(change.node)[0], self._offset(change.until)[1]
        line = getattr(change.node, "lineno", statement.lineno)
        before = " ".join(self.source[start:end].split())
        after = " ".join(change.text.split())
        shown = f"{before[:60]} -> {after[:60]}"
        yield Mutant(
            f"{self.path} {scope.function} {change.operator}: {shown}",
            self.path,
            change.operator,
            line,
            (change.run or statement).lineno,
            start,
            end,
            change.text,
        )

    def _offset(self, node: ast.AST) -> tuple[int, int]:
        """First and last place of a node, in characters."""
        assert isinstance(node, ast.expr | ast.stmt) and node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        if self._plain:
            return start, end
        return len(self._bytes[:start].decode()), len(self._bytes[:end].decode())

    def _text(self, node: ast.AST) -> str:
        start, end = self._offset(node)
        return self.source[start:end]

    def _between(self, first: ast.stmt, second: ast.stmt) -> str:
        return self.source[self._offset(first)[1] : self._offset(second)[0]]


Text = Callable[[ast.AST], str]


def _changes(statement: ast.stmt, text: Text) -> Iterator[_Change]:
    """The mistakes in one statement, those of statements within it left out."""
    match statement:
        case ast.Expr(value=ast.Call() as call):
            name = _called(call)
            yield _Change(
                f"delete {name}" if name in _DURABLE else "delete call",
                statement,
                statement,
                "pass",
            )
            if "\n" not in text(statement):
                quiet = f'with __import__("contextlib").suppress(Exception): {text(statement)}'
                yield _Change(SWALLOW, statement, statement, quiet)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]) | ast.AugAssign():
            yield _Change("forget to set", statement, statement, "pass")
        case ast.Delete() | ast.Raise():
            yield _Change("delete statement", statement, statement, "pass")
        case ast.If(test=test, body=body):
            yield _Change("negate condition", test, test, f"not ({text(test)})")
            if isinstance(body[-1], _LEAVES):
                yield _Change("drop the guard", test, test, "False", body[0])
        case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) as value):
            yield _Change("negate answer", value, value, f"not ({text(value)})")
        case ast.While(body=body):
            yield from _new_ids(body, text)
        case ast.For(body=body):
            yield from _new_ids(body, text)
        case _:
            pass
    for node in _own_expressions(statement):
        yield from _of_expression(node, text)


def _of_expression(node: ast.expr, text: Text) -> Iterator[_Change]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BOUNDARIES:
            yield _Change(
                "off by one", node, node, f"{text(left)} {_BOUNDARIES[type(op)]} {text(right)}"
            )
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=int())):
            yield _Change("off by one", node, node, text(left))
        case ast.IfExp(test=test):
            yield _Change("negate condition", test, test, f"not ({text(test)})")
        case ast.keyword(arg=name, value=ast.Constant(value=bool() as flag) as value) if (
            name not in _MANNERS
        ):
            yield _Change("flip flag", value, value, str(not flag))
        case _:
            return


def _new_ids(body: list[ast.stmt], text: Text) -> Iterator[_Change]:
    """In a loop that tries again: another id than that of the try before."""
    for statement in body:
        if not isinstance(statement, ast.Try):
            continue
        names = dict.fromkeys(
            text(node)
            for part in statement.body
            for node in ast.walk(part)
            if isinstance(node, ast.Name | ast.Attribute) and _is_identity(node)
        )
        for handler in statement.handlers:
            first = handler.body[0]
            indent = "\n" + " " * first.col_offset
            for name in names:
                yield _Change("new id on retry", first, first, f"{name} += 1{indent}{text(first)}")


def _is_identity(node: ast.Name | ast.Attribute) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name.strip("_") in _IDENTITIES


def _functions(node: ast.AST, within: str) -> Iterator[tuple[ast.FunctionDef, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            name = f"{within}{child.name}"
            if child.name not in ("__repr__", "__str__"):
                yield child, name
            yield from _functions(child, f"{name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _functions(child, within)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a function, functions and classes in it left out."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body
            for statement in body:
                if not isinstance(statement, _DEEPER):
                    yield from _bodies(statement)
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from _bodies(part)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement, those of statements and functions in it left out."""
    left: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)
    ]
    while left:
        node = left.pop()
        if isinstance(node, ast.ExceptHandler | ast.match_case):
            continue
        if isinstance(node, ast.expr | ast.keyword):
            yield node  # type: ignore[misc]
        left += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _gives(function: ast.FunctionDef) -> bool:
    returns = function.returns
    return not (isinstance(returns, ast.Constant) and returns.value is None)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.strip("_")
        case _:
            return ""


def _is_action(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Assign(targets=[ast.Attribute()]):
            return True
        case _:
            return False


def _are_apart(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements only set, and neither reads what the other one sets: nobody can tell
    in which order they stand."""
    both = (first, second)
    if any(isinstance(node, ast.Call) for s in both for node in ast.walk(s)):
        return False
    sets, reads = zip(*map(_names, both), strict=True)
    return not (sets[0] & (sets[1] | reads[1]) or sets[1] & reads[0])


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """What a statement sets, and what it reads."""
    sets: set[str] = set()
    reads: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            (sets if isinstance(node.ctx, ast.Store) else reads).add(name)
    if isinstance(statement, ast.AugAssign):
        reads |= sets
    return sets, reads


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
