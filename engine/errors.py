"""Errors that both runners and the interpreter raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bettong.engine.ids import MessageId
from bettong.engine.keys import Key
from bettong.lineage.errors import BettongError, UsageError


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


class AheadError(UsageError):
    """A sink has batches that the state does not know of: those to come have their numbers, and
    would be taken for them."""

    @classmethod
    def of(cls, where: object, newest: int) -> AheadError:
        """Of a sink that is ``where``, for a state whose newest batch is ``newest``."""
        if newest < 0:
            return cls(
                f"{where}: it has batches of an earlier run, and the checkpoint is new and would "
                "number its own from 0 again: give another place, or the checkpoint of that run"
            )
        return cls(
            f"{where}: it has batches after {newest}, the last one in the checkpoint, which is an "
            "older copy or another one: give the checkpoint of the run that made them, or "
            "another place"
        )


class MissingError(BettongError):
    """A source no longer has messages that the application has taken."""
