"""What goes wrong with a Dedalus program: always one message, with the file and the line."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.lineage.dedalus.syntax import Position
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import did_you_mean


class DedalusError(UsageError):
    """A mistake in a Dedalus program.

    Attributes:
        position: where it is; the message begins with it.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(f"{position}: {message}")
        self.position = position


def hint(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'log'?"`` when a known name is near, else an empty string."""
    found = did_you_mean(name, known, quote=repr)
    return found and f"; {found}"
