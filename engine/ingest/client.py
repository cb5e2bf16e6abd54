"""The reader's end of the gateway: what Spark's planner and executors use."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.engine.address import Address
from bettong.engine.ingest.frames import (
    CODEC,
    Batch,
    Hello,
    Read,
    Release,
    Released,
    Status,
    StatusReply,
    Welcome,
)
from bettong.engine.net.access import Key
from bettong.engine.net.block import Block
from bettong.engine.net.client import Client, Patience, Watched
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import FrameError
from bettong.engine.net.names import check_name
from bettong.engine.net.watched import known, part_of
from bettong.lineage.trace import MessageRange

READER_BYTES = 64 << 20
"""The most bytes of a frame that a reader takes."""


class RangeClient(Client):
    """Reads one stream of a gateway. Nothing it asks does harm when asked again, so it repeats
    what a lost connection may have swallowed.

    Where a method takes a ``step``, each attempt is an occurrence of it, on the link from this
    process' node to the gateway.

    All methods raise RefusedError (code ``range``: messages that are not there) and
    ConnectionLostError when patience ends.
    """

    peer = "gateway"
    codec = CODEC

    def __init__(
        self,
        address: Address,
        stream: str,
        key: Key | None = None,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(address, key, patience, frame_bytes=READER_BYTES)
        self.stream = check_name("a stream", stream)

    def greet(self, connection: Connection) -> None:
        connection.request(Hello(self.stream, "read", self.key.token), Welcome)

    def status(
        self,
        upto: int = 0,
        wait: float = 0.0,
        *,
        step: str = "",
        causes: Iterable[str] = (),
        carries: Iterable[MessageRange] = (),
    ) -> StatusReply:
        """How far the stream has come; waits up to ``wait`` seconds until message ``upto - 1``
        is there or the stream has ended."""
        request = Status(upto, int(wait * 1000), step)

        def ask(connection: Connection, watched: Watched) -> StatusReply:
            reply = connection.request(request, StatusReply, wait)
            watched.caused_by(*known(reply.step))
            return reply

        return self.attempt(ask, step, causes, carries)

    def read(
        self, start: int, stop: int, *, step: str = "", causes: Iterable[str] = ()
    ) -> list[Block]:
        """Messages ``start`` up to but not including ``stop``, in blocks in their order.
        ``block.payloads()`` gives bytes, ``block.to_arrow()`` a binary array. What one answer does
        not hold is asked for in further parts, each a step ``part=K`` within the step."""

        def ask(connection: Connection, watched: Watched) -> list[Block]:
            blocks = [self._block(connection, watched, start, stop, step)] if start < stop else []
            at = start + sum(map(len, blocks))
            while at < stop:
                rest = [MessageRange(self.stream, at, stop)]
                name = part_of(step, len(blocks))
                with self.part(step, len(blocks), rest) as part:
                    blocks.append(self._block(connection, part, at, stop, name))
                watched.caused_by(*known(name))
                at += len(blocks[-1])
            return blocks

        return self.attempt(ask, step, causes, [MessageRange(self.stream, start, stop)])

    def _block(
        self, connection: Connection, watched: Watched, start: int, stop: int, step: str
    ) -> Block:
        reply = connection.request(Read(start, stop, step), Batch)
        if reply.start != start or not 0 < len(reply.messages) <= stop - start:
            raise FrameError(f"the gateway sent other messages than {start} to {stop}")
        watched.caused_by(*known(*reply.steps))
        return reply.messages

    def release(self, upto: int, *, step: str = "", causes: Iterable[str] = ()) -> None:
        """Let the gateway drop the messages below ``upto``; durable on return."""
        request = Release(upto, step)

        def ask(connection: Connection, watched: Watched) -> None:
            watched.caused_by(*known(connection.request(request, Released).step))

        self.attempt(ask, step, causes, [MessageRange(self.stream, upto - 1, upto)] if upto else [])
