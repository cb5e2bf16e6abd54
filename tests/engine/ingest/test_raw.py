"""Plain TCP into the gateway."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.address import Address
from bettong.engine.ingest.client import RangeClient
from bettong.engine.ingest.frames import CODEC, Hello, Welcome
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.raw import FRAMINGS, RawOption, Splitter
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.block import Block
from bettong.engine.net.client import open_connection
from bettong.engine.net.errors import FrameError, RefusedError
from bettong.engine.net.listener import Limits
from bettong.lineage.errors import UsageError

LOOPBACK = Address("127.0.0.1", 0)


@given(
    st.sampled_from([2, 4, 8]),
    st.lists(st.binary(max_size=20)),
    st.lists(st.integers(0, 200)),
    st.booleans(),
)
def test_messages_survive_any_cutting(
    width: int, messages: list[bytes], cuts: list[int], lines: bool
) -> None:
    if lines:
        width, messages = 0, [message.replace(b"\n", b"") for message in messages]
        sent = b"".join(message + b"\n" for message in messages)
    else:
        sent = b"".join(len(message).to_bytes(width, "big") + message for message in messages)
    splitter = Splitter(width, 20)
    found, last = [], 0
    for cut in [*sorted(min(cut, len(sent)) for cut in cuts), len(sent)]:
        found += splitter.feed(sent[last:cut])
        last = cut
    assert found + splitter.finish() == messages


def test_a_last_line_needs_no_end_but_a_length_must_be_kept() -> None:
    lines, lengths = Splitter(0, 10), Splitter(1, 10)
    assert lines.feed(b"one\ntwo") == [b"one"]
    assert lines.finish() == [b"two"]
    assert lengths.feed(b"\3one\3tw") == [b"one"]
    with pytest.raises(FrameError, match="cut short"):
        lengths.finish()


@pytest.mark.parametrize(
    ("width", "data"), [(0, b"x" * 11), (0, b"x" * 11 + b"\n"), (2, b"\0\xff")]
)
def test_long_messages_are_refused_before_they_are_kept(width: int, data: bytes) -> None:
    with pytest.raises(FrameError, match="over the limit of 10 bytes"):
        Splitter(width, 10).feed(data)


def test_options() -> None:
    assert RawOption.parse("a=127.0.0.1:0") == ("a", LOOPBACK, 0)
    assert RawOption.parse("a=127.0.0.1:0,u16") == ("a", LOOPBACK, 2)
    for text in ("", "a", "a=b", "a=127.0.0.1:0,u3", "/=127.0.0.1:0"):
        with pytest.raises(UsageError):
            RawOption.parse(text)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    found = Gateway(ListenConfig(LOOPBACK), tmp_path, Limits(frame_bytes=1000), max_unreleased=50)
    threading.Thread(target=found.run, daemon=True).start()
    yield found
    found.close()


def test_lines_are_kept_in_order_and_wait_for_room(gateway: Gateway) -> None:
    raw = gateway.take_raw(RawOption("lines", LOOPBACK, FRAMINGS["lines"]))
    client = RangeClient(gateway.address, "lines")
    sent = [b"%d" % n + b"." * 500 for n in range(5000)]

    def send() -> None:
        with socket.create_connection(raw.address) as sock:
            sock.sendall(b"\n".join(sent))

    sending = threading.Thread(target=send)
    sending.start()
    seen: list[bytes] = []
    chunk = (1 << 18) // 500 + 1
    while len(seen) < len(sent):
        status = client.status(len(seen) + 1, wait=30)
        assert status.end <= status.released + 50 + chunk, "one chunk beyond the limit at most"
        seen += Block.join(client.read(len(seen), status.end)).payloads()
        client.release(len(seen))
    sending.join(60)
    assert seen == sent
    raw.close()


def test_bad_messages_end_their_connection_only(gateway: Gateway) -> None:
    raw = gateway.take_raw(RawOption("lines", LOOPBACK, FRAMINGS["u16"]))
    with (
        socket.create_connection(raw.address, 10) as good,
        socket.create_connection(raw.address, 10) as bad,
    ):
        bad.sendall(b"\xff\xff")
        assert bad.recv(1) == b""
        good.sendall(b"\0\3one")
        client = RangeClient(gateway.address, "lines")
        assert client.status(1, wait=30).end == 1
        assert client.read(0, 1)[0].payloads() == [b"one"]
    raw.close()


def test_a_numbering_sender_is_refused(gateway: Gateway) -> None:
    raw = gateway.take_raw(RawOption("lines", LOOPBACK, FRAMINGS["lines"]))
    with (
        open_connection(gateway.address, Key(), CODEC, 10, 1000) as connection,
        pytest.raises(RefusedError, match="takes plain TCP"),
    ):
        connection.request(Hello("lines", "send", ""), Welcome)
    raw.close()


def test_beyond_loopback_a_token_is_not_enough(gateway: Gateway) -> None:
    with pytest.raises(UsageError, match="--tls-client-ca FILE"):
        gateway.take_raw(RawOption("lines", Address("0.0.0.0", 0), 0))


@pytest.mark.parametrize(
    ("width", "data"), [(0, b"one\ntwo\n" + b"x" * 11 + b"\nthree\n"), (1, b"\3one\3two\xff")]
)
def test_what_came_whole_before_a_long_message_is_kept(width: int, data: bytes) -> None:
    splitter = Splitter(width, 10)
    assert splitter.feed(data) == [b"one", b"two"]
    with pytest.raises(FrameError, match="over the limit of 10 bytes"):
        splitter.feed(b"")


def test_what_could_never_be_read_is_not_let_in(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--max-frame-bytes"):
        Gateway(ListenConfig(LOOPBACK), tmp_path, Limits(frame_bytes=64 << 20))
