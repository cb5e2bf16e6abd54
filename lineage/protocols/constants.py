"""What the rules of a protocol may go by beside facts has to stay as it is.

A node that keeps something on ``self``, on its class or in its module tells it to all nodes without
a message, and to all runs: what could be lost would never be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

from bettong.lineage.protocols.protocol import Declared, Protocol, ProtocolError, Relation
from bettong.lineage.protocols.rule_code import is_ours


class Constants:
    """What rules and conditions name that is no fact, as it was at first."""

    def __init__(self, protocol: Protocol, declared: Declared) -> None:
        self._protocol = protocol
        self._named = {name for rule in declared.rules for name, _ in rule.uses}
        self._any = "*" in self._named
        globals_of = {id(g): g for r in declared.rules for g in _globals_of(r.function)}
        self._modules = list(globals_of.values())
        self._first = dict(self._now())

    def expect_unchanged(self, who: str) -> None:
        """Raise ProtocolError when any of it is another one now."""
        now = dict(self._now())
        for name in (*now, *self._first):
            if now.get(name) != self._first.get(name):
                raise ProtocolError(
                    f"{who} has changed {name}, which every node and every run sees without a "
                    "message: let rules and conditions rest on their arguments and on what me or "
                    "the world tells alone; what a node keeps is a State"
                )

    def _now(self) -> Iterator[tuple[str, Hashable]]:
        cls = type(self._protocol)
        found = {**self._of_classes(cls), **_values(vars(self._protocol))}
        for name, value in found.items():
            if self._is_named(name) and not isinstance(getattr(cls, name, None), cached_property):
                yield f"self.{name}", _state(value, ())
        for module in self._modules:
            for name, value in _values(module).items():
                own = not isinstance(value, type) or value.__module__ == module.get("__name__")
                if own and self._is_named(name):
                    yield f"{name} of {module.get('__name__')}", _state(value, ())

    def _is_named(self, name: str) -> bool:
        return self._any or name in self._named

    def _of_classes(self, cls: type[Protocol]) -> dict[str, Any]:
        bases = [b for b in cls.__mro__ if b not in (Protocol, object)]
        return {n: v for base in bases for n, v in _values(vars(base)).items()}


def _globals_of(function: Any) -> Iterator[dict[str, Any]]:
    while function is not None:
        if isinstance(function, FunctionType):
            yield function.__globals__
        function = getattr(function, "__wrapped__", None)


def _values(names: Any) -> dict[str, Any]:
    """Those that are neither code nor a relation, which rules cannot change."""
    kinds = (FunctionType, ModuleType, Relation, cached_property, property)
    return {
        name: value
        for name, value in names.items()
        if not (name.startswith("__") or isinstance(value, (*kinds, staticmethod, classmethod)))
    }


def _state(value: Any, within: tuple[int, ...]) -> Hashable:
    """What is equal while the value is as it was."""
    if id(value) in within:
        return id(value)
    inside = (*within, id(value))
    if isinstance(value, dict):
        items = ((_state(k, inside), _state(v, inside)) for k, v in value.items())
        return type(value), tuple(items)
    if isinstance(value, list | tuple | deque):
        return type(value), tuple(_state(v, inside) for v in value)
    if isinstance(value, set | frozenset):
        return type(value), frozenset(_state(v, inside) for v in value)
    if isinstance(value, str | bytes | int | float | complex | None):
        return type(value), value
    if is_ours(value if isinstance(value, type) else type(value)) or not hasattr(value, "__dict__"):
        return id(value)  # what Python keeps for itself, such as that of a type, comes and goes
    held = _values(vars(value)) if isinstance(value, type) else vars(value)
    return id(value), _state(held, inside)
