"""Where the embedded server's proxies listen."""

from __future__ import annotations

import asyncio
import socket

import pytest

from bettong.harness.toxiproxy.embedded.proxy import Proxy

_REUSES = (socket.SOL_SOCKET, socket.SO_REUSEADDR)


def test_a_port_that_the_system_chooses_is_nobody_elses_and_can_be_listened_on_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two sockets that may share a port and were both given it only one can listen."""
    bound: list[bool] = []

    class Noting(socket.socket):
        def bind(self, address: object) -> None:
            bound.append(bool(self.getsockopt(*_REUSES)))
            super().bind(address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Noting)

    async def listens_twice() -> None:
        proxy = Proxy(asyncio.get_running_loop(), "one", "", "127.0.0.1:1")
        for _ in range(2):
            proxy.start()
            assert proxy._listener is not None
            assert proxy._listener.getsockopt(*_REUSES)
            proxy.stop()

    asyncio.run(listens_twice())
    assert bound == [False, True]
