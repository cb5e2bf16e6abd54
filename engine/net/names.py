"""Names that become part of ids and of paths."""

from __future__ import annotations

import re

from bettong.lineage.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_name(name: str) -> bool:
    """Whether a stream or an application can have it."""
    return _NAME.fullmatch(name) is not None


def check_name(what: str, name: str) -> str:
    """The name, if a stream or an application can have it; otherwise raises UsageError."""
    if not is_name(name):
        raise UsageError(
            f"{what} cannot be called {name!r}: 1 to 100 letters, digits, '.', '_', '-', "
            "the first a letter or digit"
        )
    return name
