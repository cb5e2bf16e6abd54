"""A server of one protocol, and what its process needs to start."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from bettong.engine.net.codec import Codec, ErrorReply
from bettong.engine.net.connection import Connection
from bettong.engine.net.doors import Door
from bettong.engine.net.errors import STORAGE, ConnectionLostError, FrameError, RefusedError
from bettong.engine.net.listener import Limits, Listener
from bettong.engine.steps import RunOverError
from bettong.lineage.errors import BettongError, UsageError

log = logging.getLogger("bettong")
C = TypeVar("C")


class Server(Listener):
    """Speaks one protocol with each client."""

    def __init__(self, door: Door, codec: Codec, limits: Limits) -> None:
        super().__init__(door, limits)
        self._codec = codec

    def serve(self, connection: Connection) -> None:
        """Speak with one client until it is done. Errors raised here are told to it."""
        raise NotImplementedError

    def speak(self, sock: socket.socket, peer: str) -> None:
        with Connection(
            sock,
            self._codec,
            limit=self.limits.frame_bytes,
            timeout=self.limits.frame_s,
            peer=peer,
        ) as connection:
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


def lock_directory(directory: Path) -> IO[bytes]:
    """Make the directory this process' own as long as the returned file is open.

    Raises UsageError when another process has it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / "lock").open("wb")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        raise UsageError(f"{directory} belongs to another process that still runs") from e
    except OSError as e:
        raise UsageError(f"cannot use {directory}: {e.strerror}") from e
    return file


def load_class(path: str, base: type[C]) -> type[C]:
    """The class ``module:Class``, which must be ``base`` or derived from it; raises UsageError."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as e:
        raise UsageError(f"--class {path}: write module:Class ({e})") from e
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"--class {path} is not derived from {base.__name__}")
    return found


def run_process(name: str, start: Callable[[], Server]) -> int:
    """Run a server as this process: one JSON line ``{"listening": "HOST:PORT"}`` on stdout when
    it accepts, log lines on stderr, exit code 0 after SIGTERM, 2 with one line when it cannot
    start."""
    logging.basicConfig(
        level=logging.WARNING, format=f"{name}: %(message)s", stream=sys.stderr, force=True
    )
    try:
        server = start()
    except (BettongError, OSError) as e:
        log.error("%s", e)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(json.dumps({"listening": str(server.address)}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    return 0
