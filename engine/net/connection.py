"""One connection: whole messages in and out, with time limits. Used by both ends."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from types import TracebackType
from typing import Any, TypeVar

from bettong.engine.net.codec import Codec, ErrorReply
from bettong.engine.net.errors import ConnectionLostError, FrameError, RefusedError
from bettong.engine.net.frame import HEADER_BYTES, check_body, encode, parse_header

T = TypeVar("T")
_ABORT = struct.pack("ii", 1, 0)  # what is unsent is dropped, and the connection reset
_FAREWELL_S = 1.0
_CHUNK = 256 << 10


class Connection:
    """A socket that carries messages of one protocol.

    Several threads may send; one receives.

    Args:
        limit: the most bytes that the body of a received frame may have; see ``widen``.
        timeout: seconds that one message may take on its way in (from its first byte) or out.

    Attributes:
        largest: bytes of the largest body that was received, or begun.
    """

    def __init__(
        self, sock: socket.socket, codec: Codec, *, limit: int, timeout: float, peer: str
    ) -> None:
        self._socket = sock
        self._codec = codec
        self._limit = limit
        self._timeout = timeout
        self._using = threading.Lock()  # TLS cannot be used by two threads at a time
        self.peer = peer
        self.largest = 0
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def widen(self, limit: int) -> None:
        """From now on received frames may have bodies of so many bytes."""
        self._limit = limit

    def send(self, message: Any) -> None:
        """Hand the message to the network; raises ConnectionLostError."""
        data = encode(message.KIND, self._codec.encode(message))
        with self._using:
            try:
                self._socket.settimeout(self._timeout)
                self._socket.sendall(data)
            except OSError as e:
                raise ConnectionLostError(f"{self.peer}: sending failed: {e}") from e

    def receive(self, idle: float | None = None) -> Any:
        """The next message.

        Args:
            idle: seconds to wait for its first byte; None waits as long as one message may take.

        Raises:
            ConnectionLostError: closed, broken or too slow.
            FrameError: what came is not a message.
        """
        first = self._timeout if idle is None else idle
        data = self._read(HEADER_BYTES, first)
        header = parse_header(bytes(data), self._limit)
        self.largest = max(self.largest, header.length)
        body = self._read(header.length, self._timeout) if header.length else bytearray()
        check_body(header, body)
        return self._codec.decode(header.kind, body)

    def request(self, message: Any, reply: type[T], wait: float = 0.0) -> T:
        """Send a message and receive its answer, which may take ``wait`` seconds longer.

        Raises RefusedError when the other end answers with an error, otherwise as ``receive``.
        """
        self.send(message)
        return self.expect(reply, self._timeout + wait)

    def expect(self, reply: type[T], idle: float | None = None) -> T:
        """The next message, which must be of this type; see ``request``."""
        answer = self.receive_reply(idle)
        if not isinstance(answer, reply):
            raise FrameError(f"{self.peer} sent {type(answer).__name__}, not {reply.__name__}")
        return answer

    def receive_reply(self, idle: float | None = None) -> Any:
        """The next message; raises RefusedError when it is an error, otherwise as ``receive``."""
        answer = self.receive(idle)
        if isinstance(answer, ErrorReply):
            raise RefusedError(answer.code, answer.text)
        return answer

    def poll(self, seconds: float) -> bool:
        """Whether something comes in, or the connection ends, within so many seconds."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        poller = select.poll()
        try:
            poller.register(self._socket, select.POLLIN)
        except ValueError:
            return True  # closed on this side
        return bool(poller.poll(seconds * 1000))

    def is_stale(self) -> bool:
        """Whether the other end has closed, or has sent what nobody asked for."""
        return self.poll(0)

    def _read(self, size: int, first: float) -> bytearray:
        """So many bytes. Room for them is made as they come: a length alone takes none."""
        data = bytearray(min(size, _CHUNK))
        done = 0
        deadline = time.monotonic() + first
        while done < size:
            if done == len(data):
                data.extend(bytes(min(size, 2 * done) - done))
            if not done:
                got = self._read_some(data, deadline)
            else:
                with memoryview(data) as view:
                    got = self._read_some(view[done:], deadline)
            if not got:
                raise ConnectionLostError(
                    f"{self.peer}: connection closed" + (" inside a frame" if done else "")
                )
            if not done:
                deadline = time.monotonic() + self._timeout
            done += got
        return data

    def _read_some(self, room: bytearray | memoryview, deadline: float) -> int:
        """Receive at least a byte, or 0 at the end."""
        try:
            while True:
                with self._using:
                    self._socket.settimeout(0)
                    with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
                        return self._socket.recv_into(room)
                if not self.poll(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError("too slow")
        except OSError as e:
            raise ConnectionLostError(f"{self.peer}: receiving failed: {e}") from e

    def close(self) -> None:
        """Close at once; a thread that is receiving gets ConnectionLostError."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def abort(self) -> None:
        """Close at once, and let the peer know: closed in good order, a connection over which it is
        sending more than there is room for would leave it waiting for a minute (TCP's zero
        window), as this side would neither read nor answer."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            self._socket.shutdown(socket.SHUT_RD)  # a thread that waits for more goes on
        self._socket.close()

    def close_with(self, error: ErrorReply) -> None:
        """Say why, then close. What the peer still sends is read for a moment and dropped:
        closing over unread bytes would reset the connection and the reason would be lost. A peer
        that has not closed by then is reset: it may be waiting for room to send more."""
        deadline = time.monotonic() + _FAREWELL_S
        with contextlib.suppress(OSError, ConnectionLostError):
            self.send(error)
            self._socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(_CHUNK):
                    self._socket.close()
                    return
        self.abort()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
