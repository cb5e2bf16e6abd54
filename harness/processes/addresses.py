"""Loopback addresses: one for each node and one for each link, where the system has more than
127.0.0.1; else nodes and links are distinguished by their ports."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from functools import cache


@cache
def many_loopback_addresses() -> bool:
    """Whether all of 127.0.0.0/8 is this machine, as on Linux."""
    try:
        with socket.create_server(("127.1.2.3", 0)):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """That many ports one after the other, free on every address, that the system gives to nobody
    else while they are held. Who binds one by its number, with ``SO_REUSEADDR`` as servers do, can
    listen there, again and again."""
    while True:
        with contextlib.ExitStack() as held:
            try:
                first = _hold(held, 0)
                ports = [first, *(_hold(held, first + n) for n in range(1, count))]
            except (OSError, OverflowError):
                continue
            yield ports
            return


def _hold(stack: contextlib.ExitStack, port: int) -> int:
    """Bind a port and do not listen, so that another can."""
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", port))
    bound: int = holder.getsockname()[1]
    return bound


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
