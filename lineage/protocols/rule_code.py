"""What the code of a rule shows that the rule may do: the helpers that it calls included.

That a fact is absent has to be explained by every rule that could have brought it about, also by
those that did nothing in the run at hand. So what may be done is read from code, not from runs:
from that of all functions which the code can come by, in tables, defaults and wrappers too.
"""

from __future__ import annotations

import builtins
import dis
import gc
import importlib
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

Use = tuple[str, str]
ANYTHING: Use = ("*", "*")

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_BY_TEXT = (getattr, vars, globals, locals, eval, exec, __import__, importlib.import_module)
"""By these a relation or a function is named in a text, that may come from anywhere."""
_GETTERS = (operator.attrgetter, operator.methodcaller)
"""By what these make, too."""
_INSIDES = ("__dict__", "__getattr__", "__getattribute__", "__globals__")
_LANGUAGE = __name__.rpartition(".")[0]
_DATA = (str, bytes, int, float, complex, type(None), type(...))


def uses(function: Callable[..., Any], owner: object, inert: type) -> frozenset[Use]:
    """Pairs (attribute, attribute of that): ``me.log.add`` gives ``("log", "add")``, what cannot
    be seen so plainly gives ``"*"``, and where anything may be done there is ANYTHING. ``owner``
    is whose method it is; what is ``inert`` does nothing by itself."""
    return frozenset(_Reader(owner, inert).of(function))


class _Reader:
    def __init__(self, owner: object, inert: type) -> None:
        self._owned = [*map(vars, type(owner).__mro__), vars(owner)]
        self._inert = inert
        self._todo: list[Any] = []
        self._seen: dict[int, Any] = {}  # with what it is, so that no other one gets its id

    def of(self, value: Any) -> Iterator[Use]:
        """What may be done by whatever a name stands for."""
        self._look_at([value])
        while self._todo:
            yield from self._of(self._todo.pop())

    def _look_at(self, values: Iterable[Any]) -> None:
        for value in values:
            if not isinstance(value, _DATA) and id(value) not in self._seen:
                self._seen[id(value)] = value
                self._todo.append(value)

    def _of(self, value: Any) -> Iterator[Use]:
        by_text = any(value is v for v in (*_BY_TEXT, *_GETTERS))
        if by_text or isinstance(value, (ModuleType, *_GETTERS)):
            yield ANYTHING  # a module that goes about by itself: anything of it may be called
        elif isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, type):
            for base in value.__mro__:
                self._look_at(() if is_ours(base) else vars(base).values())
        elif not isinstance(value, self._inert):
            parts = [p for p in gc.get_referents(value) if not _is_where_it_is_from(p, value)]
            self._look_at([type(value), *parts])

    def _of_function(self, function: FunctionType) -> Iterator[Use]:
        cells = {}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # not bound yet
                yield ANYTHING
        self._look_at([*cells.values(), *vars(function).values()])
        self._look_at([function.__defaults__, function.__kwdefaults__])
        if is_ours(function):
            return
        names: dict[str, Any] = {**vars(builtins), **function.__globals__, **cells}
        # what it is given may be of any of these
        classes = [v for v in names.values() if isinstance(v, type) and not is_ours(v)]
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            codes += [c for c in code.co_consts if isinstance(c, CodeType)]
            yield from self._of_code(code, names, classes)

    def _of_code(self, code: CodeType, names: dict[str, Any], classes: list[type]) -> Iterator[Use]:
        steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL")]
        for n, this in enumerate(steps):
            if this.opname == "IMPORT_NAME" or this.argval in _INSIDES:
                yield ANYTHING
            if this.opname not in (*_ATTRIBUTES, *_NAMES):
                continue
            after = []
            for step in steps[n + 1 :]:
                if step.opname not in _ATTRIBUTES:
                    break
                after.append(step.argval)
            yield this.argval, after[0] if after else "*"
            if this.opname in _NAMES:
                self._look_at([_of_module(names.get(this.argval), after)])
                continue
            for owned in self._owned:  # super() may mean any of them
                member = owned.get(this.argval)
                if _is_rule(member):
                    yield ANYTHING  # by its name alone another rule does not say that it is called
                else:
                    self._look_at([member])
            members = [vars(cls).get(this.argval) for cls in classes]
            self._look_at(member for member in members if not _is_rule(member))


def _of_module(value: Any, path: list[str]) -> Any:
    """What ``module.sub.name`` stands for."""
    for name in path:
        if isinstance(value, ModuleType):
            value = getattr(value, name, None)
    return value


def _is_rule(value: Any) -> bool:
    return hasattr(value, "bettong_rule")


def _is_where_it_is_from(part: Any, value: Any) -> bool:
    return isinstance(part, ModuleType) and isinstance(value, BuiltinFunctionType)


def is_ours(value: Any) -> bool:
    """Whether it is Python's own, or of what protocols are written in: neither does anything to a
    relation but what the code that calls it shows."""
    module = str(getattr(value, "__module__", None))
    return module.startswith(_LANGUAGE) or module.partition(".")[0] in sys.stdlib_module_names
