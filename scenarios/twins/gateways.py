"""Gateways with a mistake."""

from __future__ import annotations

from typing import Any

from bettong.engine.ingest.frames import Batch, Data, Read
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.connection import Connection


class AcksEarly(Gateway):
    """Acknowledges a frame as soon as it is in memory, and writes it after that."""

    def take_data(self, connection: Connection, stream: Stream, data: Data) -> None:
        self.acknowledge(connection, stream, data)
        self.append(connection, stream, data)


class ReleasesWhenRead(Gateway):
    """Lets go of messages once they have been read, before what becomes of them is durable."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "segment_bytes": 64})

    def read(self, stream: Stream, request: Read) -> Batch:
        batch = super().read(stream, request)
        if request.start <= stream.journal.released < request.stop:
            stream.release(request.stop)
        return batch
