"""Sources and sinks that are servers: the ingest gateway and the two-phase receiver.

Objects of this module are sent to workers and hold no connection; each process keeps one
connection for each endpoint, for all the tasks that it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from bettong.engine.address import Address
from bettong.engine.errors import AheadError, FencedError
from bettong.engine.graph import Application
from bettong.engine.ingest.client import RangeClient
from bettong.engine.keys import key_text
from bettong.engine.net.access import Key
from bettong.engine.net.block import Block
from bettong.engine.net.client import Client, Patience
from bettong.engine.net.errors import RefusedError
from bettong.engine.net.peers import address_of
from bettong.engine.receiver.client import ReceiverClient
from bettong.engine.receiver.rows import PART_BYTES, Columns
from bettong.engine.receiver.rows import Row as ReceiverRow
from bettong.engine.sinks.base import Noted, Row, Rows
from bettong.engine.sources.base import Extent
from bettong.lineage.trace import MessageRange

C = TypeVar("C", bound=Client)

_clients: dict[tuple[str, str], tuple[object, Client]] = {}


def _client(kind: str, name: str, identity: object, make: Callable[[], C]) -> C:
    """This process's client for an endpoint; another one when the endpoint has moved."""
    found = _clients.get((kind, name))
    if found is not None:
        if found[0] == identity:
            return found[1]  # type: ignore[return-value]
        found[1].close()
    client = make()
    _clients[kind, name] = identity, client
    return client


@dataclass(frozen=True)
class GatewaySource:
    """A stream of an ingest gateway.

    Attributes:
        address: where the gateway listens.
        stream: the stream's name.
        key: the token or certificate that the gateway asks for.
        patience: how long a lost connection is tried again.
    """

    address: Address
    stream: str
    key: Key = field(default_factory=Key)
    patience: Patience = field(default_factory=Patience)

    def extent(self, upto: int, wait: float) -> Extent:
        status = self._client().status(upto, wait)
        return Extent(status.end, status.ended, status.base)

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Sequence[bytes]:
        blocks = self._client().read(planned.start, planned.stop, step=step, causes=causes)
        return [message for block in blocks for message in block.payloads()]

    def plan(self, planned: MessageRange, step: str) -> None:
        self._client().status(planned.stop, step=step, carries=[planned])

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        self._client().release(upto, step=step, causes=causes)

    def _client(self) -> RangeClient:
        address = address_of("gateway", self.address)
        return _client(
            "gateway",
            self.stream,
            (address, self.key, self.patience),
            lambda: RangeClient(address, self.stream, self.key, self.patience),
        )


@dataclass(frozen=True)
class TcpSink:
    """The two-phase receiver.

    Attributes:
        address: where the receiver listens.
        application: under which name it keeps the outputs.
        key: the token or certificate that the receiver asks for.
        patience: how long a lost connection is tried again.
        part_bytes: how much of a task's outputs is handed over at a time.
    """

    promises: ClassVar[str] = "effectively-once"
    part_bytes: ClassVar[int] = PART_BYTES
    address: Address
    application: str
    key: Key = field(default_factory=Key)
    patience: Patience = field(default_factory=Patience)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        try:
            self._fenced(
                lambda: self._client(epoch).open(
                    newest=newest, step=noted.step, causes=noted.causes
                )
            )
        except RefusedError as e:
            if e.code == "ahead" and newest is not None:
                raise AheadError.of(self.address, newest) from e
            raise

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        staged = _columns(rows)
        try:
            self._fenced(
                lambda: self._client(epoch).prepare(
                    batch,
                    partition,
                    attempt,
                    staged,
                    part_bytes=self.part_bytes,
                    step=noted.step,
                    causes=noted.causes,
                    carries=noted.carries,
                )
            )
        except RefusedError as e:
            if e.code != "frame" or not rows:
                raise
            longest = max(rows, key=lambda row: len(row.data))
            raise RefusedError(
                e.code,
                f"the receiver at {self.address} does not take the outputs of batch {batch}: {e}. "
                f"The longest is {longest.id} with {len(longest.data)} bytes: give the receiver a "
                f"greater --max-frame-bytes, of {self.part_bytes} at least",
            ) from e

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        self._fenced(
            lambda: self._client(epoch).commit(
                batch,
                winners,
                step=noted.step,
                causes=noted.causes,
                carries=noted.carries,
            )
        )

    def _fenced(self, request: Callable[[], object]) -> None:
        try:
            request()
        except RefusedError as e:
            if e.code == "fenced":
                raise FencedError(f"{self.application} has been started again: {e}") from e
            raise

    def _client(self, epoch: int) -> ReceiverClient:
        address = address_of("receiver", self.address)
        return _client(
            "receiver",
            self.application,
            (address, epoch, self.key, self.patience),
            lambda: ReceiverClient(address, self.application, epoch, self.key, self.patience),
        )


def _columns(rows: Sequence[Row]) -> Columns:
    """Outputs as the receiver takes them; those that are in columns already are not taken apart."""
    if not isinstance(rows, Rows):
        return Columns.of([ReceiverRow(i, key_text(k), d) for i, k, d in rows])
    keys, data = rows.key_texts(), rows.data
    return Columns(
        Block.of_arrow(rows.ids),
        Block.of([b""] * len(rows) if keys is None else [key.encode() for key in keys]),
        bytes([keys is not None]) * len(rows),
        Block.of(data) if isinstance(data, list) else Block.of_arrow(data),
    )


def kept_as(app: Application, sink: str) -> str:
    """The name under which a receiver keeps outputs: one sink has the application's own."""
    return app.name if len(app.sinks) == 1 else f"{app.name}.{sink}"
