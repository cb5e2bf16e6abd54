"""Clients that left the proxied address: brokers tell theirs where to go next."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psutil


def direct_clients(upstream: tuple[str, int]) -> list[str]:
    """Processes of this machine that are connected straight to the server at ``upstream``, as
    ``java (pid 123)``, ours and the server's own left out.

    A look at this moment; a connection that came and went is not seen, nor one to a server on
    another machine by a process of another user. Empty where the system does not tell.
    """
    try:
        upstream = (socket.gethostbyname(upstream[0]), upstream[1])
        connections = psutil.net_connections("tcp")
    except (psutil.AccessDenied, OSError):
        return []
    servers = {c.pid for c in connections if c.laddr == upstream and c.status == "LISTEN"}
    pids = {
        c.pid
        for c in connections
        if c.raddr == upstream and c.status == "ESTABLISHED" and c.pid not in servers
    }
    found = []
    for pid in sorted(pid for pid in pids if pid not in (None, os.getpid())):
        with suppress(psutil.NoSuchProcess):
            found.append(f"{psutil.Process(pid).name()} (pid {pid})")
    return found
