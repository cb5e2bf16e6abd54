"""Keeping the clients of a Kafka broker behind the proxy.

A broker's replies tell clients where to go next: its advertised address. Where a client came
through a proxy, the proxy's address is put there instead. It has to have the same length (of the
host; the port always has four bytes), so that the reply stays as it is otherwise.
"""

from __future__ import annotations

import struct

from bettong.engine.address import Address


class Redirect:
    """What a broker says on one connection, with another address in the place of its own."""

    def __init__(self, own: Address, shown: Address) -> None:
        self._own, self._shown = _written(own), _written(shown)
        self._data = bytearray()

    @classmethod
    def between(cls, own: Address, shown: Address | None) -> Redirect | None:
        """None where nothing is to be shown, or cannot be in the same length: then the broker
        itself has to advertise the proxy."""
        fits = shown is not None and len(own[0]) == len(shown[0])
        return cls(own, shown) if shown is not None and fits else None

    def feed(self, data: bytes) -> bytes:
        """The replies that are complete with these bytes, rewritten."""
        self._data += data
        size = 0
        while len(self._data) >= size + 4:
            end = size + 4 + max(0, struct.unpack_from("!i", self._data, size)[0])
            if end > len(self._data):
                break
            size = end
        whole = bytes(self._data[:size])
        del self._data[:size]
        return whole.replace(self._own, self._shown)

    def rest(self) -> bytes:
        """What has come of a reply that will never be complete."""
        rest = bytes(self._data)
        self._data.clear()
        return rest


def _written(address: Address) -> bytes:
    """As Kafka writes it: the host's text, then the port as an int32."""
    return address[0].encode() + struct.pack("!i", address[1])
