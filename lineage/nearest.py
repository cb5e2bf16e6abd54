"""Names that users give, checked against the right ones; errors name the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from bettong.lineage.errors import UsageError


def one_of(name: str, known: Sequence[str], what: str, error: type[UsageError] = UsageError) -> str:
    """The name, when it is among the known; else raise ``error`` with the nearest of them."""
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        raise error(f"{what} {name!r} is not known; did you mean {near[0]}?")
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    raise error(f"{what} {name!r} is not known; there are: {listed or 'none'}")
