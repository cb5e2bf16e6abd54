"""What can go wrong with a real server."""

from __future__ import annotations

from bettong.lineage.errors import BettongError


class ServerMissingError(BettongError):
    """A program that the server needs is not installed; the message names the command that brings
    it. A test that meets it should skip loudly."""


class ServerFailedError(BettongError):
    """The server did not start, or ended; the message has the end of its log."""
