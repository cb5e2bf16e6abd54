"""Gateways with a mistake."""

from __future__ import annotations

from bettong.engine.ingest.frames import Data
from bettong.engine.ingest.gateway import Gateway, Stream
from bettong.engine.net.connection import Connection


class AcksEarly(Gateway):
    """Acknowledges a frame as soon as it is in memory, and writes it after that."""

    def take_data(self, connection: Connection, stream: Stream, data: Data) -> None:
        self.acknowledge(connection, stream, data)
        self.append(connection, stream, data)
