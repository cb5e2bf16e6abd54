"""Ports for servers that come back where they were."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
