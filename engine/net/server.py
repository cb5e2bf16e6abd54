"""A server of one protocol."""

from __future__ import annotations

import logging
import socket

from bettong.engine.net.access import ListenConfig
from bettong.engine.net.codec import Codec, ErrorReply
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import STORAGE, ConnectionLostError, FrameError, RefusedError
from bettong.engine.net.listener import Limits, Listener
from bettong.engine.net.memory import LARGE_FRAME, give_back
from bettong.engine.steps import RunOverError
from bettong.lineage.errors import BettongError

log = logging.getLogger("bettong")
FIRST_FRAME_BYTES = 16 << 10  # a name, a role and a token


class Server(Listener):
    """Speaks one protocol with each client."""

    def __init__(self, access: ListenConfig, codec: Codec, limits: Limits) -> None:
        super().__init__(access, limits)
        self._codec = codec

    def serve(self, connection: Connection) -> None:
        """Speak with one client until it is done. Errors raised here are told to it."""
        raise NotImplementedError

    def let_in(self, connection: Connection) -> None:
        """The client has shown that it may come in: it may send frames of full size."""
        self.admit()
        connection.widen(self.limits.frame_bytes)

    def speak(self, sock: socket.socket, peer: str) -> None:
        connection = Connection(
            sock,
            self._codec,
            limit=min(FIRST_FRAME_BYTES, self.limits.frame_bytes),
            timeout=self.limits.frame_s,
            peer=peer,
        )
        self._speak(connection, peer)
        if connection.largest >= LARGE_FRAME:
            give_back()

    def _speak(self, connection: Connection, peer: str) -> None:
        with connection:
            try:
                self.serve(connection)
            except ConnectionLostError as e:
                log.debug("%s", e)
            except RunOverError:
                raise
            except (BettongError, OSError) as e:
                log.warning("%s: %s", peer, e)
                connection.close_with(ErrorReply(error_code(e), str(e)))
            except Exception as e:
                connection.close_with(ErrorReply("defect", f"{type(e).__name__}: {e}"))
                raise


def error_code(error: Exception) -> str:
    """The word for an error that goes to the peer with its text."""
    if isinstance(error, RefusedError):
        return error.code
    if isinstance(error, FrameError):
        return "frame"
    return STORAGE if isinstance(error, OSError) else "refused"
