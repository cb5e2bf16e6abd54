"""Plain TCP as a sink: whatever listens gets the rows' bytes.

Each task attempt makes a connection, sends its rows, ends its side and waits until the other side
has ended too, which says that everything was read. Attempts that fail or lose, and batches that
are replayed, send again: at-least-once, and that only from a listener that reads to the end before
it closes. Order holds within a key of one attempt.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.net.client import Patience, back_off
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.net.peers import address_of
from bettong.engine.sinks.base import Noted, Row
from bettong.lineage.errors import BettongError

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class PlainTcpSink:
    """Rows for a program that knows nothing of Bettong.

    Attributes:
        address: where it listens.
        framing: ``lines`` puts a line end after each row, ``length`` its length as a big-endian
            u32 before it.
        patience: how long a lost connection is tried again.
    """

    promises: ClassVar[str] = "at-least-once"
    address: Address
    framing: Literal["lines", "length"] = "lines"
    patience: Patience = field(default_factory=Patience)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Nothing is fenced: a zombie's rows arrive."""

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Send the rows; they are visible at once, whoever wins."""
        data = b"".join(map(self._framed, rows))
        link = f"{steps.installed().node}->receiver"
        lost: OSError | None = None
        for _ in back_off(self.patience.give_up_s):
            try:
                with steps.step(noted.step, causes=noted.causes, carries=noted.carries, link=link):
                    self._send(data)
                return
            except OSError as e:
                lost = e
        raise ConnectionLostError(f"gave up after {self.patience.give_up_s:g} s: {lost}")

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Nothing is left to be done."""
        with steps.step(noted.step, causes=noted.causes, carries=noted.carries):
            pass

    def _framed(self, row: Row) -> bytes:
        if self.framing == "length":
            return _LENGTH.pack(len(row.data)) + row.data
        if b"\n" in row.data:
            raise BettongError(
                f"output {row.id} has a line end in it: give the sink framing='length'"
            )
        return row.data + b"\n"

    def _send(self, data: bytes) -> None:
        address = address_of("receiver", self.address)
        with socket.create_connection(address, self.patience.timeout_s) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
