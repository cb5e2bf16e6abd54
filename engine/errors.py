"""Errors that both runners and the interpreter raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class DeadLetter:
    """A message on which a user's function failed.

    The id under which it comes to its sink is the message's with the number of the step appended,
    counted from 0 in the order of the application's steps.

    Attributes:
        step: name of the step.
        message: id of the message as it came to the step.
        key: its key, None without one.
        error: type and text of the error.
        value: the message as it came to the step; bytes at a source.
    """

    step: str
    message: str
    key: Key | None
    error: str
    value: Any


class FencedError(BettongError):
    """A newer start of the application has taken over; this one must end."""


class MissingError(BettongError):
    """A source no longer has messages that the application has taken."""
