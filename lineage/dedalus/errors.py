"""What goes wrong with a Dedalus program: always one message, with the file and the line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bettong.lineage.dedalus.syntax import Position
from bettong.lineage.errors import UsageError


class DedalusError(UsageError):
    """A mistake in a Dedalus program.

    Attributes:
        position: where it is; the message begins with it.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(f"{position}: {message}")
        self.position = position


def nearest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'log'?"`` when a known name is near, else an empty string."""
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""
