"""What the code of a rule shows that the rule may do: the helpers that it calls included.

That a fact is absent has to be explained by every rule that could have brought it about, also by
those that did nothing in the run at hand. So what may be done is read from code, not from runs.
"""

from __future__ import annotations

import builtins
import dis
import operator
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

Use = tuple[str, str]
ANYTHING: Use = ("*", "*")

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_BY_TEXT = (getattr, vars, eval, exec, operator.attrgetter, operator.methodcaller)
"""By these a relation is named in a text, that may come from anywhere."""


def uses(function: Callable[..., Any], cls: type, inert: type) -> frozenset[Use]:
    """Pairs (attribute, attribute of that): ``me.log.add`` gives ``("log", "add")``, what cannot
    be seen so plainly gives ``"*"``, and where anything may be done there is ANYTHING. What is
    ``inert`` does nothing by itself."""
    return frozenset(_Reader(cls, inert).of(function))


class _Reader:
    def __init__(self, cls: type, inert: type) -> None:
        self._cls = cls
        self._inert = inert
        self._seen: set[int] = set()

    def of(self, value: Any) -> Iterator[Use]:
        """What may be done by whatever a name stands for."""
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, partial):
            value = value.func
        value = getattr(value, "__func__", value)
        if any(value is known for known in _BY_TEXT):
            yield ANYTHING
        elif isinstance(value, FunctionType):
            if self._is_new(value):
                yield from self._of_function(value)
        elif not isinstance(value, ModuleType | self._inert):
            kind = value if isinstance(value, type) else type(value)
            if self._is_new(kind):
                for base in kind.__mro__:
                    for method in () if _is_standard(base) else vars(base).values():
                        if isinstance(method, FunctionType | staticmethod | classmethod | property):
                            yield from self.of(method)

    def _is_new(self, value: Any) -> bool:
        known = id(value) in self._seen or _is_standard(value)
        self._seen.add(id(value))
        return not known

    def _of_function(self, function: FunctionType) -> Iterator[Use]:
        names: dict[str, Any] = {**vars(builtins), **function.__globals__}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not bound yet
                yield ANYTHING
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            codes += [c for c in code.co_consts if isinstance(c, CodeType)]
            yield from self._of_code(code, names)

    def _of_code(self, code: CodeType, names: dict[str, Any]) -> Iterator[Use]:
        steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL")]
        for n, this in enumerate(steps):
            if this.opname == "IMPORT_NAME":
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
                yield from self.of(_of_module(names.get(this.argval), after))
            else:
                for base in self._cls.__mro__:  # super() may mean any of them
                    member = vars(base).get(this.argval)
                    # by its name alone another rule does not say that it is called
                    yield from [ANYTHING] if hasattr(member, "bettong_rule") else self.of(member)


def _of_module(value: Any, path: list[str]) -> Any:
    """What ``module.sub.name`` stands for."""
    for name in path:
        if isinstance(value, ModuleType):
            value = getattr(value, name, None)
    return value


def _is_standard(value: Any) -> bool:
    root = str(getattr(value, "__module__", None)).partition(".")[0]
    return root in sys.stdlib_module_names
