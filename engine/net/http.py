"""A listener at which a few questions are answered over HTTP."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from bettong.engine.net.access import ListenConfig
from bettong.engine.net.listener import Limits, Listener

Answer = tuple[int, str, bytes]
"""Status, content type and body."""

TEXT = "text/plain; charset=utf-8"


class HttpListener(Listener):
    """Answers ``GET`` in a thread of its own until it is closed; a token is given as
    ``Authorization: Bearer TOKEN``.

    Raises:
        UsageError: the address is not safe or cannot be had.
    """

    def __init__(self, access: ListenConfig, name: str) -> None:
        super().__init__(access, Limits(connections=16, idle_s=30))
        threading.Thread(target=self.run, name=name, daemon=True).start()

    def respond(self, path: str) -> Answer:
        """The answer to a question of someone who may ask."""
        raise NotImplementedError

    def speak(self, sock: socket.socket, peer: str) -> None:
        _Request(sock, peer, self)  # type: ignore[arg-type]  # only handed to the request

    def answer(self, path: str, authorization: str) -> Answer:
        """The answer to a request."""
        if not self.access.admits(authorization.removeprefix("Bearer ")):
            return 401, TEXT, b"a token is needed: Authorization: Bearer TOKEN\n"
        self.admit()
        return self.respond(path.partition("?")[0])


class _Request(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        status, kind, body = self.server.answer(self.path, self.headers.get("Authorization", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
