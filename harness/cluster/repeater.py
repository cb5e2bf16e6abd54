"""Delivers a request a second time, as a network does that keeps a copy, or keeps a connection
silent for good, as a firewall does that has forgotten it.

A repeater stands before the proxy of one link of a run and passes whole frames on. What a client
sends within one step is remembered; once it has been answered, the copy goes to the server over a
connection of its own, which says Hello as the client's has. On a client's own connection the copy
would stand where the next request is expected: TCP does not deliver twice.

Only what is asked of the gateway and the receiver can come twice. An answer cannot: it belongs to
the connection of its request.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable

from bettong.engine.address import Address
from bettong.engine.net.codec import ErrorReply
from bettong.engine.net.errors import FrameError
from bettong.engine.net.frame import HEADER_BYTES, parse_header
from bettong.harness.faults.actuator import InjectionOutcome
from bettong.lineage.errors import BettongError

ANSWER_TIMEOUT = 5.0
_LONGEST = 1 << 30


class RepeaterError(BettongError):
    """A copy that cannot be delivered."""


class _Conversation:
    """One connection of the client: the frames that it has sent since a fault was armed, and
    whether nothing passes any more although it stays open."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.is_stranded = False
        self.hello = b""
        self.kept: list[bytes] = []
        self.answers = 0

    def close(self) -> None:
        for side in (self.client, self.server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()


class Repeater:
    """Stands before one address of one link.

    Args:
        host: where it listens.

    Attributes:
        address: ``HOST:PORT`` that the client has to use.
    """

    def __init__(self, upstream: str, host: str) -> None:
        self._upstream = Address.parse(upstream)
        self._listener = socket.create_server((host, 0))
        self.address = "{}:{}".format(*self._listener.getsockname()[:2])
        self._changed = threading.Condition()
        self._armed = False
        self._open: list[_Conversation] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self) -> None:
        """From now on remember what the client sends."""
        with self._changed:
            self._armed = True

    def deliver(self, step_failed: bool) -> InjectionOutcome:
        """Wait until what was remembered is answered, then deliver it again."""
        with self._changed:
            if not step_failed:  # it is on its way
                self._changed.wait_for(lambda: any(c.kept for c in self._open), ANSWER_TIMEOUT)
            self._armed = False
            hit = next((c for c in self._open if c.kept), None)
            if hit is None:
                return InjectionOutcome(False, "nothing was sent")
            self._changed.wait_for(lambda: hit.answers > 0, ANSWER_TIMEOUT)
            hello, frames = hit.hello, list(hit.kept)
            for conversation in self._open:  # what was tried again elsewhere is of this step too
                conversation.kept.clear()
        size = sum(map(len, frames))
        try:
            answer = self._again(hello, frames)
        except (OSError, FrameError) as e:
            return InjectionOutcome(False, f"a copy of {size} bytes was not answered: {e}")
        if answer is None:
            return InjectionOutcome(False, f"a copy of {size} bytes was refused before it was read")
        how = "refused" if answer == ErrorReply.KIND else "answered"
        return InjectionOutcome(True, f"a copy of {size} bytes was delivered and {how}")

    def strand(self) -> None:
        """The connections on which something was sent meanwhile stay open, and silent."""
        with self._changed:
            self._armed = False
            for conversation in self._open:
                conversation.is_stranded |= bool(conversation.kept)
                conversation.kept.clear()

    def close(self) -> None:
        """Nobody comes through any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._changed:
            conversations = list(self._open)
        for conversation in conversations:
            conversation.close()

    def _again(self, hello: bytes, frames: Iterable[bytes]) -> int | None:
        """Say the frames on a new connection; the kind of the last answer, None when the server
        does not want the connection and so has read none of them."""
        with socket.create_connection(self._upstream, ANSWER_TIMEOUT) as server:
            server.sendall(hello)
            if _frame(server)[3] == ErrorReply.KIND:
                return None
            kind = -1
            for frame in frames:
                server.sendall(frame)
                kind = _frame(server)[3]
                if kind == ErrorReply.KIND:
                    break
            return kind

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._upstream, ANSWER_TIMEOUT)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            conversation = _Conversation(client, server)
            with self._changed:
                self._open.append(conversation)
            for pump in (self._requests, self._answers):
                threading.Thread(target=self._run, args=(pump, conversation), daemon=True).start()

    def _run(self, pump: Callable[[_Conversation], None], conversation: _Conversation) -> None:
        try:
            while True:
                pump(conversation)
        except (OSError, FrameError):
            if pump == self._requests or not conversation.is_stranded:
                conversation.close()

    def _requests(self, conversation: _Conversation) -> None:
        frame = _frame(conversation.client)
        with self._changed:
            if not conversation.hello:
                conversation.hello = frame
            elif self._armed:
                conversation.kept.append(frame)
                conversation.answers = 0
                self._changed.notify_all()
        if not conversation.is_stranded:
            conversation.server.sendall(frame)

    def _answers(self, conversation: _Conversation) -> None:
        frame = _frame(conversation.server)
        with self._changed:
            conversation.answers += 1
            self._changed.notify_all()
            if conversation.is_stranded:
                return
        conversation.client.sendall(frame)


class Repeaters:
    """The repeaters of one run: one for each address on the links on which a copy is planned."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self._links: set[str] = set()
        self._made: dict[str, list[Repeater]] = {}
        self._armed: dict[str, list[Repeater]] = {}
        self._watched: dict[str, list[Repeater]] = {}

    def plan(self, links: Iterable[str]) -> None:
        """Stand before these links, when they are made."""
        self._links |= set(links)

    def way(self, link: str, address: str) -> str:
        """The address that the client has to use in place of the link's own."""
        if link not in self._links:
            return address
        made = Repeater(address, self._host)
        self._made.setdefault(link, []).append(made)
        return made.address

    def repeat(self, fault: str, link: str) -> str:
        """Remember what is sent on the link; the evidence."""
        found = self._made.get(link, [])
        if not found:
            raise RepeaterError(f"{fault}: nothing that is asked on this link comes twice")
        for repeater in found:
            repeater.arm()
        self._armed[fault] = found
        return f"in force on {', '.join(repeater.address for repeater in found)}"

    def repeats(self, fault: str) -> bool:
        """Whether this fault is in force here."""
        return fault in self._armed

    def deliver(self, fault: str, step_failed: bool) -> InjectionOutcome:
        """Deliver the copy."""
        reported = [repeater.deliver(step_failed) for repeater in self._armed.pop(fault)]
        return next((outcome for outcome in reported if outcome.fired), reported[0])

    def watch(self, fault: str, link: str) -> None:
        """Remember on which connections of the link something is sent from now on."""
        self._watched[fault] = self._made.get(link, [])
        for repeater in self._watched[fault]:
            repeater.arm()

    def strand(self, fault: str) -> None:
        """Nothing passes on these any more, and they stay open."""
        for repeater in self._watched.pop(fault, []):
            repeater.strand()

    def close(self) -> None:
        for repeaters in self._made.values():
            for repeater in repeaters:
                repeater.close()
        self._made.clear()


def _frame(sock: socket.socket) -> bytes:
    """The next whole frame; raises OSError at the end."""
    header = _exactly(sock, HEADER_BYTES)
    return header + _exactly(sock, parse_header(header, _LONGEST).length)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise ConnectionError("closed")
        data += piece
    return bytes(data)
