"""Where something listens: the one place that reads ``HOST:PORT``."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

from bettong.lineage.errors import UsageError


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """``HOST:PORT`` or ``[IPV6]:PORT``; raises UsageError."""
        before, _, port = text.rpartition(":")
        host = before.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal():
            raise UsageError(f"{text!r} is not an address: write HOST:PORT, as 127.0.0.1:4000")
        if len(port) > 5 or int(port) > 65535:
            raise UsageError(f"{text!r} is not an address: write HOST:PORT with a port up to 65535")
        return cls(host, int(port))

    @staticmethod
    def is_meant(text: str) -> bool:
        """Whether a text that may be a path too stands for an address, even a wrong one."""
        host, _, port = text.rpartition(":")
        return bool(host) and port.isdecimal() and "/" not in host

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_private(self) -> bool:
        """Whether it is one address of a private network, or a name that stands for such only."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError:
            return False
        addresses = [ipaddress.ip_address(at[0]) for *_, at in found]
        return all(a.is_private and not a.is_unspecified for a in addresses)
