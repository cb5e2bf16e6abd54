"""Clients that left the proxied address: brokers tell theirs where to go next."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress

import psutil


def direct_clients(upstream: tuple[str, int], session: int | None = None) -> list[str]:
    """Processes of this machine, or those of a session, that are connected straight to the server
    at ``upstream``, as ``java (pid 123)``, ours and the server's own left out.

    A look at this moment; a connection that came and went is not seen, nor one to a server on
    another machine by a process of another user. Empty where the system does not tell.
    """
    try:
        upstream = (socket.gethostbyname(upstream[0]), upstream[1])
        connections = psutil.net_connections("tcp")
    except (psutil.AccessDenied, OSError):
        return []
    servers = {c.pid for c in connections if _is(c.laddr, upstream) and c.status == "LISTEN"}
    pids = {
        c.pid
        for c in connections
        if _is(c.raddr, upstream) and c.status == "ESTABLISHED" and c.pid not in servers
    }
    found = []
    for pid in sorted(pid for pid in pids if pid not in (None, os.getpid())):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if session in (None, os.getsid(pid)):
                found.append(f"{psutil.Process(pid).name()} (pid {pid})")
    return found


def _is(address: Sequence[object], upstream: tuple[str, int]) -> bool:
    """A JVM reaches an address of IPv4 as one of IPv6."""
    if len(address) < 2:
        return False
    host, port = address[:2]
    return (str(host).removeprefix("::ffff:"), port) == upstream
