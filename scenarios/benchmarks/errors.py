"""What a measurement raises."""

from __future__ import annotations

from bettong.lineage.errors import BettongError


class WrongResultError(BettongError):
    """A benchmark whose outputs are not what they should be."""
