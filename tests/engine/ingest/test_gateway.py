"""The gateway in this process: strangers, limits, credits, several senders and readers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile, read_acked
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.frames import (
    CODEC,
    Ack,
    Credit,
    Data,
    Hello,
    Ping,
    Release,
    Status,
    Welcome,
)
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.sender import LossError, Pace, Sender
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.block import Block
from bettong.engine.net.client import Patience, open_connection
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import ConnectionLostError, FrameError, RefusedError
from bettong.engine.net.frame import encode
from bettong.engine.net.listener import Limits
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import read_trace

LOOPBACK = Address("127.0.0.1", 0)
PATIENCE = Patience(timeout_s=10, give_up_s=10)
MESSAGES = [b"message %d" % n for n in range(100)]
Serve = Callable[..., Gateway]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def begin(
            directory: Path = tmp_path / "gateway",
            limits: Limits | None = None,
            token: str = "",
            max_unreleased: int = 0,
            segment_bytes: int = 64 << 20,
        ) -> Gateway:
            gateway = Gateway(
                ListenConfig(LOOPBACK, token=token),
                directory,
                limits,
                max_unreleased=max_unreleased,
                segment_bytes=segment_bytes,
            )
            threading.Thread(target=gateway.run, daemon=True).start()
            stack.callback(gateway.close)
            return gateway

        yield begin


def send(
    gateway: Gateway,
    messages: Iterable[bytes] = MESSAGES,
    *,
    pace: Pace | None = None,
    acked: Path | None = None,
    key: Key | None = None,
) -> int:
    note = AckedFile(acked, "lines")
    sender = Sender(gateway.address, "lines", messages, note, pace=pace, key=key, patience=PATIENCE)
    return sender.run()


def reader(gateway: Gateway, stream: str = "lines", key: Key | None = None) -> RangeClient:
    return RangeClient(gateway.address, stream, key, PATIENCE)


def sender_connection(gateway: Gateway, stream: str = "lines") -> tuple[Connection, Welcome]:
    connection = open_connection(gateway.address, Key(), CODEC, 10, 1 << 20)
    return connection, connection.request(Hello(stream, "send", ""), Welcome)


def read_all(gateway: Gateway) -> list[bytes]:
    client = reader(gateway)
    status = client.status()
    blocks = client.read(status.base, status.end)
    client.close()
    return [payload for block in blocks for payload in block.payloads()]


@pytest.mark.parametrize("pace", [Pace(), Pace(7), Pace(7, 4), Pace(1000)])
def test_what_is_sent_is_read(serve: Serve, pace: Pace, tmp_path: Path) -> None:
    gateway = serve()
    assert send(gateway, pace=pace, acked=tmp_path / "acked") == 100
    assert read_acked(tmp_path / "acked", "lines") == (100, True)
    client = reader(gateway)
    assert client.status().ended
    assert Block.join(client.read(33, 78)).payloads() == MESSAGES[33:78]
    assert Block.join(client.read(33, 78)).to_arrow().to_pylist() == MESSAGES[33:78]
    assert client.read(5, 5) == []
    assert send(gateway, pace=pace) == 100, "sending it again changes nothing"
    assert read_all(gateway) == MESSAGES


def test_long_ranges_come_in_several_frames(serve: Serve) -> None:
    gateway = serve()
    messages = [bytes([n]) * 100_000 for n in range(100)]
    send(gateway, messages, pace=Pace(3))
    blocks = reader(gateway).read(1, 99)
    assert len(blocks) > 1
    assert Block.join(blocks).payloads() == messages[1:99]


def test_a_sender_goes_on_where_another_incarnation_was(serve: Serve) -> None:
    gateway = serve()

    def broken() -> Iterator[bytes]:
        yield from MESSAGES[:40]
        raise OSError("the input is gone")

    with pytest.raises(OSError, match="input is gone"):
        send(gateway, broken(), pace=Pace(4))
    assert reader(gateway).status(upto=40, wait=10).end == 40
    send(gateway, pace=Pace(4, 2))
    assert read_all(gateway) == MESSAGES


def test_a_reader_waits_for_messages_without_polling(serve: Serve) -> None:
    gateway = serve()
    found = []
    client = reader(gateway)
    waiting = threading.Thread(target=lambda: found.append(client.status(100, wait=60)))
    waiting.start()
    send(gateway, pace=Pace(10))
    waiting.join(60)
    assert found[0].end == 100


class GrowsWhileAsked(Gateway):
    """Takes the last message and the end of a stream while it says how far that has come."""

    def append_step_of(self, stream: Stream, upto: int) -> str:
        if not stream.journal.ended:
            stream.journal.append(Block.of([b"the last one"]))
            stream.journal.finish()
        return super().append_step_of(stream, upto)


def test_a_stream_has_not_ended_before_its_last_message(tmp_path: Path) -> None:
    with closing(GrowsWhileAsked(ListenConfig(LOOPBACK), tmp_path / "gateway")) as gateway:
        stream = gateway.stream("lines")
        stream.append_raw(Block.of([b"the first one"]))
        told = [gateway.status(stream, Status(0, 0, "")) for _ in range(2)]
    assert [(status.end, status.ended) for status in told] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    "start", [[], [RangeClient], [Welcome]], ids=["first frame", "reader", "unasked"]
)
@given(garbage=st.binary(min_size=1, max_size=64))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_garbage_costs_nobody_else_anything(
    serve: Serve, caplog: pytest.LogCaptureFixture, start: list[object], garbage: bytes
) -> None:
    gateway = shared(serve)
    caplog.clear()
    with socket.create_connection(gateway.address, 10) as stranger:
        if RangeClient in start:
            hello = Hello("lines", "read", "")
            stranger.sendall(encode(Hello.KIND, CODEC.encode(hello)))
        if Welcome in start:
            welcome = Welcome(0, 0, False, "")
            stranger.sendall(encode(Welcome.KIND, CODEC.encode(welcome)))
        stranger.sendall(garbage)
        stranger.shutdown(socket.SHUT_WR)
        stranger.settimeout(60)
        while stranger.recv(1 << 16):
            pass
    assert not [r for r in caplog.records if r.exc_info], "no defect"
    connection, welcome = sender_connection(gateway, "other")
    connection.send(Data(welcome.next, Block.of([b"one"]), ""))
    assert connection.expect(Ack).upto == welcome.next + 1
    connection.close()


_shared: dict[int, Gateway] = {}


def shared(serve: Serve) -> Gateway:
    if id(serve) not in _shared:
        _shared.clear()
        _shared[id(serve)] = serve()
    return _shared[id(serve)]


def refusal(gateway: Gateway, *messages: object, raw: bytes = b"") -> RefusedError:
    """What the gateway says to these frames (or bytes) of a sender."""
    connection, _ = sender_connection(gateway)
    for message in messages:
        connection.send(message)
    if raw:
        connection._socket.sendall(raw)
    with pytest.raises(RefusedError) as found:
        while True:
            connection.receive_reply()
    with pytest.raises(ConnectionLostError):
        connection.receive()
    connection.close()
    return found.value


@pytest.mark.parametrize(
    ("frames", "code", "text"),
    [
        ([Data(5, Block.of([b"x"]), "")], "gap", "lines/0 is next, not 5"),
        ([Data(0, Block.of([]), "")], "empty", "without messages"),
        ([Welcome(0, 0, False, "")], "frame", "sent Welcome"),
    ],
)
def test_frames_that_make_no_sense_are_refused_by_name(
    serve: Serve, caplog: pytest.LogCaptureFixture, frames: list[object], code: str, text: str
) -> None:
    with caplog.at_level(logging.WARNING, "bettong"):
        error = refusal(serve(), *frames)
    assert error.code == code
    assert text in str(error)
    assert len([r for r in caplog.records if text in r.getMessage()]) == 1, "one line"


def test_bad_bytes_are_answered_and_logged_in_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = serve(limits=Limits(frame_bytes=1000))
    good = encode(Data.KIND, CODEC.encode(Data(0, Block.of([b"x"]), "")))
    long = encode(Data.KIND, CODEC.encode(Data(0, Block.of([b"x" * 2000]), "")))
    for raw, text in [
        (good[:-1] + b"y", "checksum"),
        (b"BT\x07" + good[3:], "version 7 is unknown; this side speaks 1"),
        (long, "over the limit of 1000 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "not a frame of Bettong"),
    ]:
        caplog.clear()
        assert text in str(refusal(gateway, raw=raw))
        assert len([r for r in caplog.records if text in r.getMessage()]) == 1
    assert reader(gateway).status().end == 0


def test_a_newer_sender_takes_the_stream_over(serve: Serve) -> None:
    gateway = serve()
    old, _ = sender_connection(gateway)
    old.send(Data(0, Block.of([b"old"]), ""))
    assert old.expect(Ack).upto == 1
    new, welcome = sender_connection(gateway)
    assert welcome.next == 1
    with pytest.raises(ConnectionLostError):
        old.send(Data(1, Block.of([b"zombie"]), ""))
        old.receive()
    new.send(Data(1, Block.of([b"new"]), ""))
    assert new.expect(Ack).upto == 2
    assert read_all(gateway) == [b"old", b"new"]
    new.close()


def test_a_sender_gets_no_credit_while_nobody_reads(serve: Serve) -> None:
    gateway = serve(max_unreleased=10, segment_bytes=200)
    client = reader(gateway)
    source = iter(MESSAGES)
    sending = threading.Thread(target=lambda: send(gateway, source, pace=Pace(2, 3)))
    sending.start()
    seen: list[bytes] = []
    while len(seen) < 100:
        status = client.status(len(seen) + 1, wait=30)
        assert status.end <= status.released + 10
        seen += [p for block in client.read(len(seen), status.end) for p in block.payloads()]
        client.release(len(seen))
        kept = list((gateway._directory / "lines").iterdir())
        assert len(kept) <= 4, "released segments are gone"
    sending.join(60)
    assert not sending.is_alive()
    assert seen == MESSAGES


def test_a_sender_without_credit_asks_whether_the_gateway_lives(serve: Serve) -> None:
    gateway = serve(max_unreleased=1)
    connection, welcome = sender_connection(gateway)
    assert welcome.limit == 1
    connection.send(Ping())
    assert connection.expect(Credit).limit == 1
    connection.close()


class _ReleasesMeanwhile(Gateway):
    """Messages are released while a sender is about to be told where the stream is."""

    between = ""

    def welcome(self, stream: Stream) -> Welcome:
        journal = stream.journal
        if self.between == "before":
            self.release(stream, Release(journal.end, ""))
        welcome = super().welcome(stream)
        if self.between == "after":
            self.release(stream, Release(journal.end, ""))
        return welcome


@pytest.mark.parametrize("between", ["before", "after"])
def test_a_sender_is_welcomed_before_it_is_told_of_credit_and_told_of_all(
    tmp_path: Path, between: str
) -> None:
    access = ListenConfig(LOOPBACK)
    with closing(_ReleasesMeanwhile(access, tmp_path / "gateway", max_unreleased=5)) as gateway:
        threading.Thread(target=gateway.run, daemon=True).start()
        connection, welcome = sender_connection(gateway)
        connection.send(Data(0, Block.of(MESSAGES[:5]), ""))
        assert connection.expect(Ack).upto == 5
        connection.close()
        gateway.between = between
        connection, welcome = sender_connection(gateway)
        if between == "before":
            assert welcome.limit == 10
        else:
            assert (welcome.limit, connection.expect(Credit).limit) == (5, 10)
        connection.close()


def test_loss_is_told_from_the_note_of_an_earlier_incarnation(serve: Serve, tmp_path: Path) -> None:
    AckedFile(tmp_path / "acked", "lines").note(7, False)
    with pytest.raises(LossError, match="all up to lines/7, and now wants lines/0"):
        send(serve(), acked=tmp_path / "acked")


def test_another_input_is_refused(serve: Serve) -> None:
    gateway = serve()
    send(gateway)
    with pytest.raises(UsageError, match="has 100 messages of lines already, the input only 3"):
        send(gateway, MESSAGES[:3])
    with pytest.raises(UsageError, match="has ended with 100 messages, but the input goes on"):
        send(gateway, [*MESSAGES, b"more"])


def test_a_torn_note_counts_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "acked"
    note = AckedFile(path, "lines")
    note.note(1, False)
    note.note(2, False)
    path.write_bytes(path.read_bytes()[:-4])
    assert read_acked(path, "lines") == (1, False)
    again = AckedFile(path, "lines")
    assert again.upto == 1
    again.note(3, True)
    assert read_acked(path, "lines") == (3, True)
    with pytest.raises(UsageError, match="about stream 'lines', not 'words'"):
        AckedFile(path, "words")


def test_idle_and_slow_clients_are_let_go(serve: Serve) -> None:
    gateway = serve(limits=Limits(frame_s=0.2, idle_s=0.2))
    idle, _ = sender_connection(gateway)
    with pytest.raises(ConnectionLostError, match="closed"):
        idle.receive(10)
    with socket.create_connection(gateway.address, 10) as slow:
        slow.sendall(b"BT\x01")  # and never the rest
        assert slow.recv(1) == b""


def test_a_range_client_connects_again_after_it_was_let_go(serve: Serve) -> None:
    gateway = serve(limits=Limits(idle_s=0.05))
    client = reader(gateway)
    assert client.status().end == 0
    connection = client._connection
    assert connection is not None
    assert connection.poll(10), "closed by the gateway"
    assert client.status().end == 0


def test_connections_are_limited_and_given_back(serve: Serve) -> None:
    gateway = serve(limits=Limits(connections=2))
    first, _ = sender_connection(gateway, "a")
    second, _ = sender_connection(gateway, "b")
    with pytest.raises(ConnectionLostError):
        sender_connection(gateway, "c")
    first.close()
    assert reader(gateway).status().end == 0, "tried again until there is room"
    second.close()


def test_only_who_knows_the_token_comes_in(serve: Serve) -> None:
    gateway = serve(token="secret")
    for key in (Key(), Key("guess")):
        with pytest.raises(RefusedError, match="token") as found:
            reader(gateway, key=key).status()
        assert found.value.code == "token"
        with pytest.raises(RefusedError, match="token"):
            send(gateway, key=key)
    assert send(gateway, key=Key("secret")) == 100
    assert reader(gateway, key=Key("secret")).status().ended


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "a b", "x" * 101, "\x00"])
def test_streams_cannot_be_called_anything(serve: Serve, name: str) -> None:
    gateway = serve()
    connection = open_connection(gateway.address, Key(), CODEC, 10, 1 << 20)
    with pytest.raises(RefusedError, match="cannot be called"):
        connection.request(Hello(name, "send", ""), Welcome)
    with pytest.raises(UsageError, match="cannot be called"):
        reader(gateway, name)


def test_ranges_that_are_not_there_are_refused(serve: Serve) -> None:
    gateway = serve()
    send(gateway)
    client = reader(gateway)
    with pytest.raises(RefusedError, match="0 to 100, not all of 90 to 101") as found:
        client.read(90, 101)
    assert found.value.code == "range"
    with pytest.raises(RefusedError, match="the stream ends at 100"):
        client.release(101)
    assert client.status().released == 0


def test_strangers_make_room_for_who_may_come_in(serve: Serve) -> None:
    gateway = serve(token="secret", limits=Limits(connections=3))
    known = reader(gateway, key=Key("secret"))
    assert known.status().end == 0
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(gateway.address, 10))
        newcomer = reader(gateway, key=Key("secret"))
        assert newcomer.status().end == 0
        assert known._connection is not None
        assert not known._connection.is_stale(), "who is in stays in"


def test_an_acknowledgement_of_what_was_not_sent_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def lie() -> None:
            sock, _ = server.accept()
            with Connection(sock, CODEC, limit=1000, timeout=60, peer="sender") as connection:
                connection.receive()
                connection.send(Welcome(0, 100, False, ""))
                connection.receive()
                connection.send(Ack(7, 100, False, ""))
                connection.poll(10)

        lying = threading.Thread(target=lie)
        lying.start()
        address = Address(*server.getsockname())
        note = AckedFile(None, "lines")
        with pytest.raises(FrameError, match="lines/6, which was not sent"):
            Sender(address, "lines", MESSAGES, note, patience=PATIENCE).run()
        assert note.upto == 0
        lying.join(60)


def test_frames_that_wait_are_kept_together(serve: Serve) -> None:
    gateway = serve()
    connection, _ = sender_connection(gateway)
    frames = [Data(n, Block.of([b"%d" % n]), "") for n in range(50)]
    connection._socket.sendall(b"".join(encode(f.KIND, CODEC.encode(f)) for f in frames))
    acks = [connection.expect(Ack).upto]
    while acks[-1] < 50:
        acks.append(connection.expect(Ack).upto)
    assert acks == sorted(set(acks))
    connection.close()
    assert read_all(gateway) == [b"%d" % n for n in range(50)]


def test_frames_are_kept_together_under_watch_too(serve: Serve, tmp_path: Path) -> None:
    gateway = serve()
    trace = tmp_path / "trace"
    steps.install(steps.Instrumentation(node="gateway", trace=str(trace)))
    try:
        connection, _ = sender_connection(gateway)
        frames = [Data(n, Block.of([b"%d" % n]), f"sender.send/lines/{n}") for n in range(50)]
        connection._socket.sendall(b"".join(encode(f.KIND, CODEC.encode(f)) for f in frames))
        while connection.expect(Ack).upto < 50:
            pass
        connection.close()
    finally:
        steps.install(steps.Instrumentation())
    appends = [
        event
        for event in read_trace(trace)
        if event.step.startswith("gateway.append/") and event.phase == "after"
    ]
    assert len(appends) < 50
    assert [c for e in appends for c in e.causes] == [f"sender.send/lines/{n}" for n in range(50)]
    for event in appends:
        (carried,) = event.carries
        assert len(event.causes) == carried.stop - carried.start
        assert [call[1] for call in event.detail["disk"]["calls"]] == ["append", "sync"]


def test_what_came_before_a_bad_frame_is_kept(serve: Serve) -> None:
    gateway = serve()
    frames = [Data(n, Block.of([b"%d" % n]), "") for n in (0, 1, 2, 7)]
    raw = b"".join(encode(f.KIND, CODEC.encode(f)) for f in frames)
    assert "lines/3 is next, not 7" in str(refusal(gateway, raw=raw))
    good = Data(3, Block.of([b"3"]), "")
    raw = encode(good.KIND, CODEC.encode(good)) + b"garbage garbage"
    assert "not a frame of Bettong" in str(refusal(gateway, raw=raw))
    assert read_all(gateway) == [b"0", b"1", b"2", b"3"]
