"""Names that users give, checked against the right ones; errors name the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from bettong.lineage.errors import UsageError


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like this one, if one is like it.

    Args:
        cutoff: how like, from 0 (any) to 1 (the same).
    """
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def one_of(name: str, known: Sequence[str], what: str, error: type[UsageError] = UsageError) -> str:
    """The name, when it is among the known; else raise ``error`` with the nearest of them."""
    if name in known:
        return name
    if near := nearest(name, known, 0.5):
        raise error(f"{what} {name!r} is not known; did you mean {near}?")
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    raise error(f"{what} {name!r} is not known; there are: {listed or 'none'}")
