"""The one root of Bettong's exceptions."""

from __future__ import annotations


class BettongError(Exception):
    """Anything that Bettong itself reports: what happened, to what, and what to do next."""


class UsageError(BettongError):
    """A mistake in what the user gave: a name, a file, an option. Exit code 2."""


def reason_of(error: Exception) -> str:
    """What an error says, without the system's number and file, which a message names itself."""
    return getattr(error, "strerror", None) or str(error)
