"""What a history that cannot be judged raises."""

from __future__ import annotations

from bettong.lineage.errors import BettongError


class MalformedHistoryError(BettongError):
    """A history with a record that cannot be read; the message names it."""
