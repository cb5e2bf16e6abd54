"""Ports that are held for a server that is started again and again."""

from __future__ import annotations

import socket

import pytest

from bettong.harness.processes.addresses import held_ports


def test_a_held_port_is_for_who_knows_its_number() -> None:
    with held_ports(3) as ports:
        assert ports == list(range(ports[0], ports[0] + 3))
        for port in ports:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.11", port))
            for _ in range(2):  # the second time beside what is left of the first
                with (
                    socket.create_server(("127.0.0.11", port)) as server,
                    socket.create_connection(server.getsockname()),
                ):
                    server.accept()[0].close()
    with socket.socket() as other:
        other.bind(("127.0.0.12", ports[0]))
