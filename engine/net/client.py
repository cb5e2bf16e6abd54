"""The client's end: connects when needed, retries what is safe to repeat."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.net.access import Key
from bettong.engine.net.codec import Codec
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import STORAGE, ConnectionLostError, RefusedError
from bettong.engine.net.watched import part_of
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long a client waits.

    Attributes:
        timeout_s: seconds for one message or connection.
        give_up_s: seconds over all attempts; at least one attempt is made.
    """

    timeout_s: float = 10.0
    give_up_s: float = 60.0


def back_off(give_up_s: float) -> Iterator[int]:
    """Numbers of attempts, with a growing pause (10 ms to 1 s) before each but the first, until
    ``give_up_s`` seconds have gone."""
    deadline = time.monotonic() + give_up_s
    attempt = 0
    while True:
        yield attempt
        pause = min(0.01 * 2**attempt, 1.0)
        if time.monotonic() + pause > deadline:
            return
        time.sleep(pause)
        attempt += 1


class Watched(Protocol):
    """What an action can say about its step."""

    def caused_by(self, *steps: str) -> None: ...


class _Unwatched:
    def caused_by(self, *steps: str) -> None:
        pass


class Client(ABC):
    """One connection to a server, opened again when it is lost. Safe for several threads."""

    peer: str
    codec: Codec

    def __init__(
        self,
        address: Address,
        key: Key | None = None,
        patience: Patience | None = None,
        *,
        frame_bytes: int,
    ) -> None:
        self.address = address
        self.key = key or Key()
        self.patience = patience or Patience()
        self._frame_bytes = frame_bytes
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def greet(self, connection: Connection) -> None:
        """Say on a new connection who this is."""

    def attempt(
        self,
        action: Callable[[Connection, Watched], T],
        step: str = "",
        causes: Iterable[str] = (),
        carries: Iterable[MessageRange] = (),
    ) -> T:
        """Run an action that is safe to repeat, as often as the connection is lost; each time is an
        occurrence of the step, if it has a name.

        A connection is opened ahead of the step, so that what is lost within it is its own request
        or reply and not those of a greeting; an occurrence without a connection fails.

        Raises RefusedError for what the server refuses, ConnectionLostError when patience ends.
        A server whose disk fails is asked again too.
        """
        lost: BettongError | None = None
        with self._lock:
            for _ in back_off(self.patience.give_up_s):
                try:
                    if not step:
                        return action(self._connected(), _Unwatched())
                    unconnected = self._try_to_connect()
                    if unconnected is not None and steps.peer_is_back(self._link):
                        unconnected = self._try_to_connect()
                    with steps.step(step, causes=causes, carries=carries, link=self._link) as s:
                        if unconnected is not None:
                            raise unconnected
                        return action(self._connected(), s)
                except ConnectionLostError as e:
                    lost = e
                    self._drop()
                except RefusedError as e:
                    lost = e
                    self._drop()
                    if e.code != STORAGE:
                        raise
                except BaseException:
                    self._drop()
                    raise
        if isinstance(lost, RefusedError):
            raise lost
        raise ConnectionLostError(f"gave up after {self.patience.give_up_s:g} s: {lost}")

    def part(
        self, step: str, number: int, carries: Iterable[MessageRange] = ()
    ) -> AbstractContextManager[Watched]:
        """What an action asks for when one request does not hold it all: each further part, by its
        number, is a step of its own within the action's step, which asks for part 0."""
        if not step:
            return nullcontext(_Unwatched())
        return steps.step(part_of(step, number), causes=[step], carries=carries, link=self._link)

    @property
    def _link(self) -> str:
        return f"{steps.installed().node}->{self.peer}"

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            self._drop()

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.is_stale():
            self._drop()
        if self._connection is None:
            connection = open_connection(
                self.address, self.key, self.codec, self.patience.timeout_s, self._frame_bytes
            )
            try:
                self.greet(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _try_to_connect(self) -> BettongError | None:
        """Why there is no connection, where there is none."""
        try:
            self._connected()
        except (ConnectionLostError, RefusedError) as e:
            return e
        return None

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_connection(
    address: Address, key: Key, codec: Codec, timeout: float, frame_bytes: int
) -> Connection:
    """A new connection; raises ConnectionLostError."""
    return Connection(
        key.connect(address, timeout),
        codec,
        limit=frame_bytes,
        timeout=timeout,
        peer=str(address),
    )
