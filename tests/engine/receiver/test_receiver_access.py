"""The receiver in this process: strangers, tokens, names."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bettong.engine.address import Address
from bettong.engine.batch.items import key_column
from bettong.engine.endpoints import TcpSink
from bettong.engine.keys import Key as StreamKey
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.net.client import Patience
from bettong.engine.net.errors import RefusedError
from bettong.engine.net.frame import encode
from bettong.engine.net.listener import Limits
from bettong.engine.receiver.client import ReceiverClient
from bettong.engine.receiver.output import read_rows
from bettong.engine.receiver.protocol import CODEC, Hello
from bettong.engine.receiver.rows import Row
from bettong.engine.receiver.server import Receiver
from bettong.engine.sinks.base import Noted, Rows
from bettong.engine.sinks.base import Row as OutputRow
from bettong.lineage.errors import UsageError

PATIENCE = Patience(timeout_s=10, give_up_s=10)
KEY_TEXTS = ["a", "\\xff", "7", "a"]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    found = Receiver(ListenConfig(Address("127.0.0.1", 0), token="secret"), tmp_path)
    threading.Thread(target=found.run, daemon=True).start()
    yield found
    found.close()


def client(receiver: Receiver, token: str = "secret") -> ReceiverClient:
    return ReceiverClient(receiver.address, "app", 1, Key(token), PATIENCE)


@given(garbage=st.binary(min_size=1, max_size=64), greet=st.booleans())
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_garbage_costs_nobody_else_anything(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, garbage: bytes, greet: bool
) -> None:
    with socket.create_connection(receiver.address, 10) as stranger:
        if greet:
            stranger.sendall(encode(Hello.KIND, CODEC.encode(Hello("app", "secret"))))
        stranger.sendall(garbage)
        stranger.shutdown(socket.SHUT_WR)
        while stranger.recv(1 << 16):
            pass
    assert not [record for record in caplog.records if record.exc_info], "no defect"
    known = client(receiver)
    known.open()
    known.close()


def test_only_who_knows_the_token_comes_in(receiver: Receiver, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="token"):
        client(receiver, "guess").open()
    known = client(receiver)
    known.open()
    known.prepare(0, 0, 0, [Row("lines/0.0", "k", b"v")])
    known.commit(0, {0: 0})
    found = list(read_rows(tmp_path / "app"))
    assert found == [{"id": "lines/0.0", "key": "k", "data": "v", "batch": 0}]


@pytest.mark.parametrize("name", ["", "..", "a/b", "lock\0"])
def test_applications_cannot_be_called_anything(receiver: Receiver, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        receiver.ledger(name)


def test_no_name_is_in_the_way_of_the_receivers_own_files(receiver: Receiver) -> None:
    for name in ("lock", "log", "output.jsonl"):
        assert receiver.ledger(name).application == name


def test_an_output_that_is_too_long_for_a_receiver_is_named(tmp_path: Path) -> None:
    """Until somebody does something the run ends with it each time that it is started."""
    limits = Limits(frame_bytes=10_000)
    receiver = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path, limits)
    threading.Thread(target=receiver.run, daemon=True).start()
    sink = TcpSink(receiver.address, "app", patience=PATIENCE)
    sink.open("app", 1, Noted(""))
    rows = [OutputRow("lines/0", None, b"short"), OutputRow("lines/1", None, b"x" * 20_000)]
    try:
        with pytest.raises(RefusedError, match=r"lines/1 with 20000 bytes: .* --max-frame-bytes"):
            sink.prepare(1, 0, 0, 0, rows, Noted(""))
        sink.prepare(1, 0, 0, 0, rows[:1], Noted(""))
    finally:
        receiver.close()


@pytest.mark.parametrize("keys", [["a", b"\xff", 7, "a"], None])
@pytest.mark.parametrize("as_array", [False, True])
def test_outputs_in_columns_are_seen_as_outputs_in_rows_are(
    tmp_path: Path, keys: list[StreamKey] | None, as_array: bool
) -> None:
    data = [b"w", b"", b"y\xff", b"z"]
    columns = Rows(
        pa.array(["left out", *(f"lines/{n}" for n in range(4))]).slice(1),
        None if keys is None else key_column(keys),
        pa.array(data) if as_array else data,
    )
    receiver = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path)
    threading.Thread(target=receiver.run, daemon=True).start()
    sink = TcpSink(receiver.address, "app", patience=PATIENCE)
    try:
        sink.open("app", 1, Noted(""))
        for batch, rows in enumerate((columns, list(columns))):
            sink.prepare(1, batch, 0, 0, rows, Noted(""))
            sink.commit(1, batch, {0: 0}, Noted(""))
    finally:
        receiver.close()
    seen = [{**row, "batch": 0} for row in read_rows(tmp_path / "app")]
    assert [row["key"] for row in seen[:4]] == ([None] * 4 if keys is None else KEY_TEXTS)
    assert [row["id"] for row in seen[:4]] == [f"lines/{n}" for n in range(4)]
    assert seen[:4] == seen[4:]


def test_a_folder_that_no_application_can_have_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    found = Receiver(ListenConfig(Address("127.0.0.1", 0)), tmp_path)
    found.close()
    assert list((tmp_path / "lost+found").iterdir()) == []
