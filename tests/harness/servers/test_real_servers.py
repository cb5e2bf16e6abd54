"""Real servers: started, crashed, paused, brought back, gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bettong.harness.servers import (
    BulkServer,
    KafkaServer,
    MariaDBServer,
    NatsServer,
    PostgresServer,
    RabbitMQServer,
    RedisServer,
    Server,
    ServerFailedError,
    ServerMissingError,
)

KINDS = [
    BulkServer,
    KafkaServer,
    MariaDBServer,
    NatsServer,
    PostgresServer,
    RabbitMQServer,
    RedisServer,
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    kind: type[Server] = request.param
    try:
        with kind() as started:
            yield started
    except ServerMissingError as e:
        pytest.skip(f"NOT TESTED: {e}")


def greeted(server: Server) -> bool:
    try:
        with socket.create_connection((server.host, server.port), timeout=0.5) as sock:
            server.greet(sock)
    except (OSError, ValueError):
        return False
    return True


@pytest.mark.servers
def test_a_server_lives_dies_and_leaves_nothing(server: Server) -> None:
    assert greeted(server)
    assert server.pid is not None
    folder, address = server.folder, server.address

    server.pause()
    assert not greeted(server)
    server.resume()

    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    server.kill()
    assert not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not greeted(server)
    assert folder.is_dir()

    server.start()
    assert greeted(server)
    assert server.address == address
    server.stop()
    assert not greeted(server)
    server.close()
    assert not folder.exists()


class _Never(Server):
    """A server that does not do what is expected of it."""

    name = "never"
    ready_seconds = 0.3

    def __init__(self, *command: str) -> None:
        super().__init__()
        self._command = list(command)

    def prepare(self) -> None:
        pass

    def command(self) -> list[str]:
        return self._command

    def greet(self, connection: socket.socket) -> None:
        raise ValueError("never")


def test_a_server_that_ends_at_once_shows_its_log() -> None:
    server = _Never("/bin/sh", "-c", "echo out of luck; exit 7")
    with pytest.raises(ServerFailedError, match=r"ended with status 7; its log ends: out of luck"):
        server.start()
    assert server.pid is None


def test_a_server_that_never_answers_is_ended() -> None:
    server = _Never("/bin/sleep", "600")
    with pytest.raises(ServerFailedError, match="does not answer"):
        server.start()
    with pytest.raises(ServerFailedError, match="not started"):
        _ = server.folder


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not BulkServer], ids=lambda k: k.name)
def test_a_missing_program_is_named_with_what_brings_it(
    kind: type[Server], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server = kind()
    with pytest.raises(ServerMissingError, match="apt-get install"):
        server.start()
    assert list(tmp_path.iterdir()) == []


def call(url: str, rows: object = None, key: str | None = None, method: str | None = None) -> str:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = None if rows is None else json.dumps(rows).encode()
    request = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read().decode()


def ids(server: BulkServer) -> list[str]:
    return [json.loads(line)["id"] for line in call(server.url()).splitlines()]


@pytest.mark.parametrize("keys", [False, True])
def test_bulk_rows_sent_again_count_unless_they_have_a_key(keys: bool) -> None:
    with BulkServer(idempotency_keys=keys) as server:
        for _ in range(2):
            assert json.loads(call(server.url(), [{"id": "a"}], "k1")) == {"stored": 1}
        call(server.url(), [{"id": "b"}])
        assert ids(server) == (["a", "b"] if keys else ["a", "a", "b"])
        server.restart()
        call(server.url(), [{"id": "a"}], "k1")
        assert ids(server) == (["a", "b"] if keys else ["a", "a", "b", "a"])
        call(server.url(), method="DELETE")
        assert ids(server) == []
        call(server.url(), [{"id": "a"}], "k1")
        assert ids(server) == ["a"]


@pytest.mark.parametrize("body", [b"{", b"{}", b'[{"id": "x"}, {"no": "id"}]', b"[1]", b"\xff"])
def test_bulk_stores_all_rows_of_a_request_or_none(body: bytes) -> None:
    with BulkServer() as server:
        request = urllib.request.Request(server.url(), body, method="POST")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(request, timeout=10)
        assert ids(server) == []


def test_bulk_stores_nothing_of_a_request_that_is_cut_off() -> None:
    with BulkServer() as server:
        with socket.create_connection((server.host, server.port), timeout=10) as sock:
            sock.sendall(b'POST /rows HTTP/1.1\r\nContent-Length: 99\r\n\r\n[{"id": "a"}]')
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(1) == b""
        assert ids(server) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
@pytest.mark.servers
def test_postgres_does_not_run_as_root() -> None:
    try:
        with PostgresServer() as server:
            assert psutil.Process(server.pid).username() != "root"
    except ServerMissingError as e:
        pytest.skip(f"NOT TESTED: {e}")


def test_a_server_ends_when_bettong_is_killed() -> None:
    program = (
        "import time; from bettong.harness.servers import BulkServer; s = BulkServer().start();"
        "print(s.pid, s.folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as bettong:
        assert bettong.stdout is not None
        pid, folder = bettong.stdout.readline().decode().split()
        server = psutil.Process(int(pid))
        bettong.kill()
    server.wait(30)
    deadline = time.monotonic() + 30
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(folder).exists()


def test_kafka_starts_whatever_its_cluster_id_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xfb" * 16))  # "-_v7…"
    try:
        with KafkaServer() as started:
            assert started.pid
    except ServerMissingError as e:
        pytest.skip(str(e))


def test_redis_forgets_what_is_to_expire_in_the_time_that_passes() -> None:
    redis = pytest.importorskip("redis")
    try:
        server = RedisServer()
        server.prepare()
    except ServerMissingError as e:
        pytest.skip(f"NOT TESTED: {e}")
    with server, redis.Redis(server.host, server.port, db=3) as db:
        assert not server.pass_time(3600)
        db.set(b"an hour\r\n\xff", 1, ex=3600)
        db.hset("a day", "field", 1)
        db.expire("a day", 86_400)
        db.set("for ever", 1)
        for _ in range(500):
            db.set(f"an hour {_}", 1, ex=3600)
        assert server.pass_time(3601)
        assert sorted(db.keys()) == [b"a day", b"for ever"]
        assert 86_400 - 3700 < db.ttl("a day") <= 86_400 - 3601
        assert not server.pass_time(3600)
