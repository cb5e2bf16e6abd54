"""Names that users give, checked against the right ones; errors name the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from bettong.lineage.errors import UsageError


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like this one, if one is like it.

    Args:
        cutoff: how like, from 0 (any) to 1 (the same).
    """
    return next(iter(most_alike(name, known, 1, cutoff)), None)


def most_alike(name: str, known: Iterable[str], most: int, cutoff: float = 0.6) -> list[str]:
    """So many known names at most, those that are most like this one first.

    Args:
        cutoff: how like, from 0 (any) to 1 (the same).
    """
    return difflib.get_close_matches(name, sorted(known), most, cutoff)


def did_you_mean(
    name: str, known: Iterable[str], cutoff: float = 0.6, quote: Callable[[str], str] = str
) -> str:
    """``did you mean NAME?`` with the known name that is most like this one; empty when none is
    like it.

    Args:
        cutoff: how like, from 0 (any) to 1 (the same).
        quote: how the name is written.
    """
    near = nearest(name, known, cutoff)
    return f"did you mean {quote(near)}?" if near else ""


def one_of(name: str, known: Sequence[str], what: str, error: type[UsageError] = UsageError) -> str:
    """The name, when it is among the known; else raise ``error`` with the nearest of them."""
    if name in known:
        return name
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    hint = did_you_mean(name, known, 0.5) or f"there are: {listed or 'none'}"
    raise error(f"{what} {name!r} is not known; {hint}")
