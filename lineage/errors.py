"""The one root of Bettong's exceptions."""

from __future__ import annotations


class BettongError(Exception):
    """Anything that Bettong itself reports: what happened, to what, and what to do next."""


class UsageError(BettongError):
    """A mistake in what the user gave: a name, a file, an option. Exit code 2."""
