"""The driver's and the executors' end of the receiver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bettong.engine.address import Address
from bettong.engine.net.access import Key
from bettong.engine.net.client import Client, Patience, Watched
from bettong.engine.net.connection import Connection
from bettong.engine.net.names import check_name
from bettong.engine.net.watched import known, part_of
from bettong.engine.receiver.protocol import (
    CODEC,
    Commit,
    Committed,
    Hello,
    Open,
    Opened,
    Prepare,
    Prepared,
    Welcome,
)
from bettong.engine.receiver.rows import PART_BYTES, Columns, Row
from bettong.lineage.trace import MessageRange

_FRAME_BYTES = 1 << 20
_NO_BATCH = (1 << 64) - 1


class ReceiverClient(Client):
    """Speaks for one application in one epoch. All requests may be repeated without harm, so a
    lost connection is made again and the request with it; each attempt is an occurrence of the
    request's step, on the link from this process' node to the receiver. ``step`` is its id, where
    it is not the usual one.

    All methods raise RefusedError (code ``fenced``: a newer epoch has begun; but for ``ahead``
    others mean a defect of the caller) and ConnectionLostError when patience ends.
    """

    peer = "receiver"
    codec = CODEC

    def __init__(
        self,
        address: Address,
        application: str,
        epoch: int,
        key: Key | None = None,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(address, key, patience, frame_bytes=_FRAME_BYTES)
        self.application = check_name("an application", application)
        self.epoch = epoch

    def greet(self, connection: Connection) -> None:
        connection.request(Hello(self.application, self.key.token), Welcome)

    def open(
        self, *, newest: int | None = None, step: str = "", causes: Iterable[str] = ()
    ) -> None:
        """Fence all older epochs; durable on return. Step ``epoch=E/sink.open``. Refused with code
        ``ahead`` when a batch after ``newest`` has been committed; None is whatever there is."""
        step = step or f"epoch={self.epoch}/sink.open"
        following = _NO_BATCH if newest is None else newest + 1

        def ask(connection: Connection, watched: Watched) -> None:
            reply = connection.request(Open(self.epoch, following, step), Opened)
            watched.caused_by(*known(reply.step))

        self.attempt(ask, step, causes)

    def prepare(
        self,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row] | Columns,
        *,
        part_bytes: int = PART_BYTES,
        step: str = "",
        causes: Iterable[str] = (),
        carries: Iterable[MessageRange] = (),
    ) -> bool:
        """Stage an attempt's rows; durable on return. Returns True when the batch has been
        committed before and nothing needs to be done. Step ``batch=N/p=P/a=A/sink.prepare``; what
        follows the first ``part_bytes`` is handed over in further parts, each a step ``part=K``
        within it."""
        step = step or f"batch={batch}/p={partition}/a={attempt}/sink.prepare"

        columns = rows if isinstance(rows, Columns) else Columns.of(rows)
        parts = list(columns.parts(part_bytes))

        def hand_over(connection: Connection, watched: Watched, number: int, name: str) -> bool:
            last = number == len(parts) - 1
            place = self.epoch, batch, partition, attempt, number, last
            reply = connection.request(Prepare(*place, *parts[number], name), Prepared)
            watched.caused_by(*known(reply.step))
            return reply.recorded

        def ask(connection: Connection, watched: Watched) -> bool:
            recorded = hand_over(connection, watched, 0, step)
            for number in range(1, len(parts)):
                if recorded:
                    break
                name = part_of(step, number)
                with self.part(step, number) as part:
                    recorded = hand_over(connection, part, number, name)
                watched.caused_by(name)
            return recorded

        return self.attempt(ask, step, causes, carries)

    def commit(
        self,
        batch: int,
        winners: Mapping[int, int],
        *,
        step: str = "",
        causes: Iterable[str] = (),
        carries: Iterable[MessageRange] = (),
    ) -> bool:
        """Make visible what the winners ``{partition: attempt}`` have prepared; durable on
        return. Returns True when that was done before. Step ``batch=N/sink.commit``."""
        step = step or f"batch={batch}/sink.commit"

        def ask(connection: Connection, watched: Watched) -> bool:
            request = Commit(self.epoch, batch, dict(winners), step)
            reply = connection.request(request, Committed)
            watched.caused_by(*known(reply.step))
            return reply.recorded

        return self.attempt(ask, step, causes, carries)
