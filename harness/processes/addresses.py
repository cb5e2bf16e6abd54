"""Loopback addresses: one for each node and one for each link, where the system has more than
127.0.0.1; else nodes and links are distinguished by their ports."""

from __future__ import annotations

import contextlib
import socket
from functools import cache


@cache
def many_loopback_addresses() -> bool:
    """Whether all of 127.0.0.0/8 is this machine, as on Linux."""
    try:
        with socket.create_server(("127.1.2.3", 0)):
            return True
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """That many ports one after the other, free on every address."""
    while True:
        with contextlib.ExitStack() as held:
            try:
                first = held.enter_context(socket.create_server(("", 0))).getsockname()[1]
                ports = list(range(first, first + count))
                for port in ports[1:]:
                    held.enter_context(socket.create_server(("", port)))
            except (OSError, OverflowError):
                continue
            return ports


class Addresses:
    """Addresses of nodes and links, the same for a name as long as this lives."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def node(self, name: str) -> str:
        """Where a node listens."""
        return f"127.0.0.{10 + self._number(name)}" if many_loopback_addresses() else "127.0.0.1"

    def link(self, a: str, b: str) -> str:
        """Where node a finds node b."""
        if not many_loopback_addresses():
            return "127.0.0.1"
        return f"127.1.{self._number(a)}.{self._number(b)}"

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)
