"""Requests that are delivered twice, over real connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from bettong.engine.net.codec import ErrorReply
from bettong.engine.net.frame import HEADER_BYTES, encode, parse_header
from bettong.harness.cluster.repeater import RepeaterError, Repeaters
from bettong.harness.faults.kinds import Duplicate
from bettong.harness.faults.point import Point

HELLO, ASK, YES = 1, 2, 3
FAULT = Duplicate("driver->receiver", Point("batch=1/sink.commit"))


def receive(sock: socket.socket) -> tuple[int, bytes]:
    header = parse_header(sock.recv(HEADER_BYTES, socket.MSG_WAITALL), 1 << 16)
    return header.kind, sock.recv(header.length, socket.MSG_WAITALL) if header.length else b""


class Server:
    """Answers each frame, and remembers what it was asked on which connection."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, bytes]] = []
        self.refuses = False
        self.refuses_hello = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        for number in range(9):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(number, connection), daemon=True).start()

    def _answer(self, number: int, connection: socket.socket) -> None:
        with connection:
            try:
                while True:
                    kind, body = receive(connection)
                    self.asked.append((number, kind, body))
                    refuses = self.refuses_hello if kind == HELLO else self.refuses
                    no = refuses and number > 0
                    connection.sendall(encode(ErrorReply.KIND if no else YES, [body]))
            except Exception:
                return

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


@pytest.fixture
def repeaters() -> Iterator[Repeaters]:
    found = Repeaters()
    found.plan(FAULT.repeated_links)
    yield found
    found.close()


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    client = socket.create_connection((host, int(port)), timeout=20)
    ask(client, HELLO, b"it is me")
    return client


def ask(client: socket.socket, kind: int, body: bytes) -> None:
    client.sendall(encode(kind, [body]))
    assert receive(client) == (YES, body)


@pytest.mark.parametrize("refuses", [False, True])
def test_a_copy_of_what_the_step_has_sent_comes_on_a_connection_of_its_own(
    server: Server, repeaters: Repeaters, refuses: bool
) -> None:
    server.refuses = refuses
    with connect(repeaters.way(FAULT.link, server.address)) as client:
        ask(client, ASK, b"before")
        FAULT.arm(repeaters)
        timer = threading.Timer(0.2, ask, (client, ASK, b"within"))  # a push is not waited for
        timer.start()
        outcome = repeaters.deliver(FAULT.id, step_failed=False)
        timer.join()
        ask(client, ASK, b"after")
    assert outcome.fired
    assert outcome.evidence.endswith("delivered and " + ("refused" if refuses else "answered"))
    assert server.asked == [
        (0, HELLO, b"it is me"),
        (0, ASK, b"before"),
        (0, ASK, b"within"),
        (1, HELLO, b"it is me"),
        (1, ASK, b"within"),
        (0, ASK, b"after"),
    ]


def test_a_copy_of_nothing_or_to_nobody_has_not_fired(server: Server, repeaters: Repeaters) -> None:
    with connect(repeaters.way(FAULT.link, server.address)) as client:
        FAULT.arm(repeaters)
        assert repeaters.deliver(FAULT.id, step_failed=True).fired is False
        FAULT.arm(repeaters)
        ask(client, ASK, b"within")
        server.close()
        outcome = repeaters.deliver(FAULT.id, step_failed=False)
    assert outcome.fired is False
    assert "was not answered" in outcome.evidence


def test_a_copy_that_is_not_let_in_has_not_fired(server: Server, repeaters: Repeaters) -> None:
    server.refuses_hello = True
    with connect(repeaters.way(FAULT.link, server.address)) as client:
        FAULT.arm(repeaters)
        ask(client, ASK, b"within")
        outcome = repeaters.deliver(FAULT.id, step_failed=False)
    assert (outcome.fired, server.asked[-1]) == (False, (1, HELLO, b"it is me"))
    assert "refused before" in outcome.evidence


def test_what_an_earlier_step_has_sent_on_another_connection_does_not_come_again(
    server: Server, repeaters: Repeaters
) -> None:
    address = repeaters.way(FAULT.link, server.address)
    with connect(address) as first, connect(address) as second:
        FAULT.arm(repeaters)
        ask(first, ASK, b"once")
        ask(second, ASK, b"tried again")
        assert repeaters.deliver(FAULT.id, step_failed=False).fired
        FAULT.arm(repeaters)
        ask(first, ASK, b"the next step's")
        assert repeaters.deliver(FAULT.id, step_failed=False).fired
        FAULT.arm(repeaters)
        ask(second, ASK, b"the last step's")
        assert repeaters.deliver(FAULT.id, step_failed=False).fired
    copies = [body for number, kind, body in server.asked if number > 1 and kind == ASK]
    assert copies[-2:] == [b"the next step's", b"the last step's"]


def test_only_links_on_which_a_copy_is_planned_are_changed(repeaters: Repeaters) -> None:
    assert repeaters.way("driver->gateway", "127.0.0.1:1") == "127.0.0.1:1"
    with pytest.raises(RepeaterError, match="nothing that is asked"):
        FAULT.arm(repeaters)


def test_a_stranded_connection_stays_open_and_silent_and_others_do_not(
    server: Server, repeaters: Repeaters
) -> None:
    address = repeaters.way(FAULT.link, server.address)
    with connect(address) as hit, connect(address) as other:
        repeaters.watch("silence", FAULT.link)
        ask(hit, ASK, b"within")
        repeaters.strand("silence")
        hit.sendall(encode(ASK, [b"in vain"]))
        ask(other, ASK, b"beside")
        with connect(address) as later:
            ask(later, ASK, b"on another")
        hit.setblocking(False)
        with pytest.raises(BlockingIOError):
            hit.recv(1)
    heard = [body for _, kind, body in server.asked if kind == ASK]
    assert heard == [b"within", b"beside", b"on another"]
