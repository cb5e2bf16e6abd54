"""What can go wrong with Toxiproxy."""

from __future__ import annotations

from bettong.lineage.errors import BettongError, UsageError


class ToxiproxyError(BettongError):
    """Toxiproxy refused a call, or cannot be used."""


class ToxicError(UsageError):
    """A toxic, or one of its attributes, that Toxiproxy would ignore or misread."""


class ProxyNotFoundError(ToxiproxyError):
    """No proxy or toxic of that name."""


class ProxyExistsError(ToxiproxyError):
    """There is a proxy or toxic of that name already."""


class ToxiproxyHungError(ToxiproxyError):
    """The server did not answer within the time limit, or not at all."""
