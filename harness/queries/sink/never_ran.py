"""Which statements of the functions that ran never did: of these a check has shown nothing.

What does nothing but raise an error is left out. What handles one that never came is told apart: it
is no part of what was to be shown, and nobody has seen what it does. A statement counts as one that
matters where it calls anything other than what has no effect.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bettong.harness.queries.sink.ran_lines import RanLine

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOTHING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass, ast.Global, ast.Nonlocal),
    *(ast.Import, ast.ImportFrom, ast.Raise, ast.Assert),
)
"""Statements that are no work."""
_HARMLESS = (
    *("abs", "all", "any", "bool", "bytes", "dict", "divmod", "enumerate", "filter", "float"),
    *("frozenset", "getattr", "hasattr", "hash", "int", "isinstance", "iter", "len", "list", "map"),
    *("max", "min", "next", "print", "range", "repr", "reversed", "round", "set", "sleep"),
    *("sorted", "str", "sum", "tuple", "type", "warn", "zip"),
)
"""Functions that leave nothing behind, unless they are handed what does."""
_CALLERS = ("map", "filter")
"""These call what they are handed first."""
_OUTPUT = ("sys.stdout", "sys.stderr", "None")
_LOGS = ("debug", "info", "warning", "warn", "error", "exception", "critical")
_LOGGERS = ("logging", "logger")
"""How the names of those end of whom ``log`` is asked; a sink may keep a log of its own."""
_AFTER_AN_ERROR = "abort"
"""What Spark calls of a data source's writer when a write has failed."""
_PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class NeverRan:
    """Lines of a file that never ran, though their function did.

    Attributes:
        lines: their numbers, with those of the functions that only they call.
        matter: whether they do anything that may have an effect.
    """

    file: str
    lines: tuple[int, ...]
    matter: bool

    def __str__(self) -> str:
        return f"{Path(self.file).name} line{'s' * (len(self.lines) > 1)} {_ranges(self.lines)}"


def never_ran(ran: Iterable[RanLine], target: Path) -> list[NeverRan]:
    """What never ran of each file of which anything did; packages that are installed are not the
    user's, unless the target is one."""
    return _of_files(ran, target, never_ran_of)


def handlers_never_ran(ran: Iterable[RanLine], target: Path) -> list[NeverRan]:
    """What handles errors that never came, of the same files, where it does anything that may have
    an effect."""
    return [x for x in _of_files(ran, target, handlers_never_ran_of) if x.matter]


def _of_files(
    ran: Iterable[RanLine],
    target: Path,
    missing_of: Callable[[str, Iterable[RanLine]], dict[int, bool]],
) -> list[NeverRan]:
    found = []
    by_file = groupby(sorted(ran), key=lambda line: line.file)
    for file, lines in by_file:
        if not _is_users(Path(file), target):
            continue
        try:
            source = Path(file).read_text("utf-8")
            missing = missing_of(source, lines)
        except (OSError, SyntaxError, ValueError):  # it is no file, or has changed meanwhile
            continue
        if missing:
            matter = any(missing.values())
            found.append(NeverRan(file, tuple(sorted(missing)), matter))
    return found


def handlers_never_ran_of(source: str, ran: Iterable[RanLine]) -> dict[int, bool]:
    """The lines of the handlers of errors of which none ran though their function did, but for
    those that end with raising one, and whether each does what matters. Raises as
    :func:`never_ran_of` does."""
    of_functions: dict[tuple[str, int], set[int]] = {}
    for line in ran:
        of_functions.setdefault((line.function, line.first), set()).add(line.number)
    found: dict[int, bool] = {}
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, _Function) and _key(function) in of_functions:
            for handler in _handlers(function.body):
                lines = [n for statement in handler.body for n in _lines(statement)]
                if of_functions[_key(function)].isdisjoint(lines):
                    missing = list(_missing(handler.body, ()))
                    matters = any(_matters(call) for x in missing for call in _calls(x))
                    found.update(dict.fromkeys((n for x in missing for n in _lines(x)), matters))
    return {number: matters for number, matters in found.items() if matters}


def _handlers(block: Sequence[ast.stmt]) -> Iterator[ast.ExceptHandler]:
    """The handlers of errors of a block, and of the blocks in it."""
    for statement in block:
        if isinstance(statement, ast.Try | ast.TryStar):
            yield from statement.handlers
            yield from _handlers([x for each in statement.handlers for x in each.body])
            yield from _handlers(statement.finalbody)
        for within in _blocks(statement):
            yield from _handlers(within)


def never_ran_of(source: str, ran: Iterable[RanLine]) -> dict[int, bool]:
    """The lines of this source that never ran though their function did, and whether each belongs
    to what matters. Raises SyntaxError, ValueError."""
    of_functions: dict[tuple[str, int], set[int]] = {}
    for line in ran:
        of_functions.setdefault((line.function, line.first), set()).add(line.number)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, _Function)]
    entered = {_key(f): of_functions[_key(f)] for f in functions if _key(f) in of_functions}
    judged = [f for f in functions if _key(f) in entered and f.name != _AFTER_AN_ERROR]
    names = {f.name for f in functions if _key(f) in entered}
    others = {f.name: f for f in functions if f.name not in names}
    left = [x for f in judged for x in _missing(f.body, entered[_key(f)])]
    called = {x for f in judged for x in _passed_over(f.body, entered[_key(f)], others)}
    left += [x for name in called for x in _missing(others[name].body, ())]
    found: dict[int, bool] = {}
    while left:
        statement = left.pop()
        own = {_own(call) for call in _calls(statement)} & others.keys()
        matters = any(_matters(call) for call in _calls(statement) if _own(call) not in own)
        for number in _lines(statement):
            found[number] = found.get(number, False) or matters
        left += [x for name in own - called for x in _missing(others[name].body, ())]
        called |= own
    return found


def _missing(block: Sequence[ast.stmt], ran: Collection[int]) -> Iterator[ast.stmt]:
    """Those of a block, and of the blocks in it, that never ran; the outermost ones."""
    missing = [x for x in block if not _has_run(x, ran)]
    if not (missing and isinstance(block[-1], ast.Raise)):
        yield from (x for x in missing if not _is_nothing(x))
    for statement in block:
        if _has_run(statement, ran):
            for within in _blocks(statement):
                yield from _missing(within, ran)


def _passed_over(
    block: Sequence[ast.stmt], ran: Collection[int], others: Mapping[str, _Function]
) -> Iterator[str]:
    """Of these functions, which never ran, those that statements call that did: within one line a
    branch may not have been taken."""
    for statement in block:
        if not _has_run(statement, ran):
            continue
        for call in _calls(statement, ast.stmt, ast.Lambda):
            function = others.get(call.func.id) if isinstance(call.func, ast.Name) else None
            if function is not None and _runs_when_called(function):
                yield function.name
        for within in _blocks(statement):
            yield from _passed_over(within, ran, others)


def _runs_when_called(function: _Function) -> bool:
    lazy = (ast.Yield, ast.YieldFrom)
    is_lazy = any(isinstance(node, lazy) for node in ast.walk(function))
    return not (is_lazy or function.decorator_list or isinstance(function, ast.AsyncFunctionDef))


def _has_run(statement: ast.stmt, ran: Collection[int]) -> bool:
    return any(number in ran for number in _lines(statement))


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _is_nothing(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    is_note = isinstance(statement, ast.AnnAssign) and statement.value is None
    return is_text or is_note or isinstance(statement, _NOTHING)


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of a statement that are no handlers of errors; definitions have blocks of their
    own."""
    if isinstance(statement, _Function | ast.ClassDef):
        return
    for name in ("body", "orelse"):
        if block := getattr(statement, name, None):
            yield block
    if isinstance(statement, ast.Match):
        yield from (case.body for case in statement.cases)


def _calls(statement: ast.stmt, *besides: type[ast.AST]) -> Iterator[ast.Call]:
    """What a statement calls, but to raise it, and but for what is within these."""
    if isinstance(statement, ast.Raise | ast.Assert):
        return
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.Raise, ast.Assert, *besides)):
                left.append(child)


def _matters(call: ast.Call) -> bool:
    function, name = call.func, _name(call)
    if isinstance(function, ast.Name):
        return name not in _HARMLESS or _is_handed(call, name)
    if not isinstance(function, ast.Attribute):
        return True
    owner = ast.unparse(function.value).lower().rpartition(".")[2]
    sleeps = (owner, name) == ("time", "sleep")
    logs = "log" in owner and name in _LOGS
    return not (sleeps or logs or owner == "warnings" or _asks_a_logger(owner, name))


def _asks_a_logger(owner: str, name: str) -> bool:
    return name == "log" and owner.endswith(_LOGGERS)


def _is_handed(call: ast.Call, name: str) -> bool:
    """Whether it is handed a file to write to, or a function to call, that may leave something
    behind: of a ``lambda`` its own calls tell that."""
    if name == "print":
        return any(x.arg == "file" and ast.unparse(x.value) not in _OUTPUT for x in call.keywords)
    given = call.args[:1] if name in _CALLERS else []
    named = [ast.unparse(x) for x in given if isinstance(x, ast.Name | ast.Attribute)]
    return any(each.partition(".")[0] not in _HARMLESS for each in named)


def _own(call: ast.Call) -> str:
    """The name of a function of the file, or of the same object, that is called; else empty."""
    function = call.func
    whose = function.value if isinstance(function, ast.Attribute) else function
    of_object = whose is function or (isinstance(whose, ast.Name) and whose.id in ("self", "cls"))
    return _name(call) if of_object else ""


def _name(call: ast.Call) -> str:
    """Of what is called, without whose it is."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _key(function: _Function) -> tuple[str, int]:
    """As its code is known by: it begins with its decorators."""
    return function.name, min(x.lineno for x in (function, *function.decorator_list))


def _is_users(file: Path, target: Path) -> bool:
    if target.parent.name in _PACKAGES:
        return file == target
    package = next((x for x in target.parents if x.parent.name in _PACKAGES), None)
    if package is not None and file.is_relative_to(package):
        return True
    return not set(file.parts).intersection(_PACKAGES)


def _ranges(numbers: Collection[int]) -> str:
    """Such as ``14, 16-20``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def in_words(missing: Sequence[NeverRan], remedy: str) -> str:
    """Of which lines nothing is said; empty where there are none."""
    if not missing:
        return ""
    named = " and ".join(map(str, missing))
    return f"{named} never ran in any run, so nothing is said of what is there: {remedy}"


def unmet_in_words(missing: Sequence[NeverRan]) -> str:
    """Of which handlers nothing is said; empty where there are none."""
    if not missing:
        return ""
    named = " and ".join(map(str, missing))
    return f"errors that {named} would handle came in no run: what is done then was not seen"
