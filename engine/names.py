"""Objects named in text as ``module:attribute``."""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

from bettong.lineage.errors import UsageError
from bettong.lineage.user_code import guarded

T = TypeVar("T")


def load_object(name: str) -> Any:
    """The named object; raises UsageError when there is none."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not attribute:
        raise UsageError(f"{name!r} is no name such as package.module:attribute")
    with guarded(f"{name}: module {module_name}"):
        module = importlib.import_module(module_name)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f"{name}: module {module_name} has no {attribute}") from None


def load_class(named: type[T] | str, base: type[T]) -> type[T]:
    """The named class, or the class itself; raises UsageError when it is none of ``base``."""
    found = load_object(named) if isinstance(named, str) else named
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"{named} is not a {base.__name__}")
    return found
