"""What can go wrong between two ends of a connection."""

from __future__ import annotations

from bettong.lineage.errors import BettongError

#: The code of a refusal that may pass: the other end's disk failed or is full.
STORAGE = "storage"


class FrameError(BettongError):
    """Bytes that are not a frame of this protocol. The connection cannot be used further."""


class ConnectionLostError(BettongError, ConnectionError):
    """The other end went away. Whether it has done what it was last asked is not known."""


class RefusedError(BettongError):
    """The other end understood and said no; unless its disk failed, asking again is useless.

    Attributes:
        code: why, one word that programs can test for, such as ``fenced``.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
