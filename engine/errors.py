"""Errors that both runners and the interpreter raise."""

from __future__ import annotations

from bettong.engine.ids import MessageId
from bettong.engine.keys import Key
from bettong.lineage.errors import BettongError


class UserFunctionError(BettongError):
    """A user's function failed; the message names step, message and key."""

    @classmethod
    def of(
        cls, step: str, message: MessageId | str, key: Key | None, error: Exception
    ) -> UserFunctionError:
        on_key = f" with key {key!r}" if key is not None else ""
        return cls(
            f"step {step} failed on message {message}{on_key}: {type(error).__name__}: {error}"
        )


class FencedError(BettongError):
    """A newer start of the application has taken over; this one must end."""
