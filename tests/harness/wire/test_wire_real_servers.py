"""Real servers and their usual client libraries: requests are told, cuts are exact."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

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
    ServerMissingError,
)
from bettong.harness.wire import CutPoints, WireEndpoint, WireRecorder, cut_points

Address = tuple[str, int]


class Target(ABC):
    """A real server, and how values are written to it and read back."""

    server: type[Server]
    library: str
    protocol: str
    write_label: str

    def __init__(self, made: Server) -> None:
        self.made = made

    def advertise(self, address: Address) -> None:  # noqa: B027 (most need not)
        """Tell the server where its clients reach it, if it tells them."""

    @abstractmethod
    def reset(self) -> None:
        """An empty target, not through the relay."""

    @abstractmethod
    def write(self, address: Address, value: int) -> None:
        """Write through the relay, without retries; raises when that fails."""

    @abstractmethod
    def read(self) -> list[int]:
        """What is there, in order, not through the relay."""

    @property
    def direct(self) -> Address:
        return (self.made.host, self.made.port)


class Postgres(Target):
    server, library, protocol = PostgresServer, "psycopg", "postgres"
    write_label = "INSERT"

    def _connect(self, address: Address):
        import psycopg

        assert isinstance(self.made, PostgresServer)
        return psycopg.connect(self.made.url(address), autocommit=True)

    def reset(self) -> None:
        with self._connect(self.direct) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute("CREATE TABLE t (v int)")

    def write(self, address: Address, value: int) -> None:
        with self._connect(address) as connection:
            connection.execute("INSERT INTO t VALUES (%s)", (value,))

    def read(self) -> list[int]:
        with self._connect(self.direct) as connection:
            return [row[0] for row in connection.execute("SELECT v FROM t ORDER BY v")]


class PostgresTransaction(Postgres):
    write_label = "COMMIT"

    def write(self, address: Address, value: int) -> None:
        with self._connect(address) as connection, connection.transaction():
            connection.execute("INSERT INTO t VALUES (%s)", (value,))


class PostgresCopy(Postgres):
    write_label = "COPY data"

    def write(self, address: Address, value: int) -> None:
        copied = "COPY t FROM STDIN"
        with self._connect(address) as connection, connection.cursor().copy(copied) as copy:
            copy.write_row((value,))


class MariaDB(Target):
    server, library, protocol = MariaDBServer, "pymysql", "mysql"
    write_label = "INSERT"

    def _connect(self, address: Address):
        import pymysql

        assert isinstance(self.made, MariaDBServer)
        host, port = address
        return closing(
            pymysql.connect(
                host=host,
                port=port,
                user=self.made.user,
                password=self.made.password,
                database=self.made.database,
                autocommit=True,
            )
        )

    def _execute(self, address: Address, *statements: str) -> list[tuple[int, ...]]:
        with self._connect(address) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def reset(self) -> None:
        self._execute(self.direct, "DROP TABLE IF EXISTS t", "CREATE TABLE t (v int)")

    def write(self, address: Address, value: int) -> None:
        self._execute(address, f"INSERT INTO t VALUES ({value})")

    def read(self) -> list[int]:
        return [row[0] for row in self._execute(self.direct, "SELECT v FROM t ORDER BY v")]


class Redis(Target):
    server, library, protocol = RedisServer, "redis", "redis"
    write_label = "RPUSH"

    def _connect(self, address: Address):
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        host, port = address
        return closing(redis.Redis(host, port, retry=Retry(NoBackoff(), 0)))

    def reset(self) -> None:
        with self._connect(self.direct) as client:
            client.flushall()

    def write(self, address: Address, value: int) -> None:
        with self._connect(address) as client:
            client.rpush("l", value)

    def read(self) -> list[int]:
        with self._connect(self.direct) as client:
            return [int(value) for value in client.lrange("l", 0, -1)]


class RabbitMQ(Target):
    server, library, protocol = RabbitMQServer, "pika", "amqp"
    write_label = "basic.publish"

    def _channel(self, address: Address):
        import pika

        host, port = address
        return closing(pika.BlockingConnection(pika.ConnectionParameters(host, port)))

    def reset(self) -> None:
        with self._channel(self.direct) as connection:
            channel = connection.channel()
            channel.queue_delete("q")
            channel.queue_declare("q")

    def write(self, address: Address, value: int) -> None:
        with self._channel(address) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"%d" % value)

    def read(self) -> list[int]:
        with self._channel(self.direct) as connection:
            channel = connection.channel()
            values = []
            while (body := channel.basic_get("q", auto_ack=False)[2]) is not None:
                values.append(int(body))
            return values


class Nats(Target):
    server, library, protocol = NatsServer, "nats", "nats"
    write_label = "PUB t.v"

    def reset(self) -> None:
        async def reset(client) -> None:
            with_stream = client.jetstream()
            try:
                await with_stream.delete_stream("t")
            except Exception as e:
                assert "not found" in str(e)
            await with_stream.add_stream(name="t", subjects=["t.*"])

        self._run(self.direct, reset)

    def _run(self, address: Address, act):
        import nats

        async def run():
            url = f"nats://{address[0]}:{address[1]}"
            client = await nats.connect(url, allow_reconnect=False, error_cb=_ignore)
            try:
                return await act(client)
            finally:
                await client.close()

        return asyncio.run(run())

    def write(self, address: Address, value: int) -> None:
        async def publish(client) -> None:
            await client.jetstream().publish("t.v", b"%d" % value, timeout=2)

        self._run(address, publish)

    def read(self) -> list[int]:
        async def read(client) -> list[int]:
            info = await client.jetstream().stream_info("t")
            messages = [
                await client.jetstream().get_msg("t", sequence)
                for sequence in range(1, info.state.last_seq + 1)
            ]
            return [int(message.data) for message in messages]

        return self._run(self.direct, read)


async def _ignore(_error: Exception) -> None:
    pass


class Kafka(Target):
    server, library, protocol = KafkaServer, "kafka", "kafka"
    write_label = "Produce"

    def advertise(self, address: Address) -> None:
        assert isinstance(self.made, KafkaServer)
        self.made.advertised = f"{address[0]}:{address[1]}"
        if self.made.pid is not None:
            self.made.restart()  # it says what it was told at its start

    @property
    def direct(self) -> Address:
        assert isinstance(self.made, KafkaServer)
        host, _, port = self.made.direct.rpartition(":")
        return host, int(port)

    def reset(self) -> None:
        self.start = len(self._all())

    def write(self, address: Address, value: int) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=f"{address[0]}:{address[1]}",
            retries=0,
            enable_idempotence=False,
            request_timeout_ms=5000,
        )
        try:
            producer.send("t", b"%d" % value, partition=0).get(timeout=20)
        finally:
            producer.close(timeout=0)

    def _all(self) -> list[int]:
        from kafka import KafkaConsumer, TopicPartition

        partition = TopicPartition("t", 0)
        with closing(
            KafkaConsumer(bootstrap_servers=f"{self.direct[0]}:{self.direct[1]}")
        ) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            end = consumer.end_offsets([partition])[partition]
            values: list[int] = []
            while len(values) < end:
                for records in consumer.poll(timeout_ms=500).values():
                    values += [int(record.value) for record in records]
            return values

    def read(self) -> list[int]:
        return self._all()[self.start :]


class Bulk(Target):
    server, library, protocol = BulkServer, "urllib", "http"
    write_label = "POST /rows"

    def _call(self, address: Address, method: str, body: bytes | None = None) -> bytes:
        assert isinstance(self.made, BulkServer)
        request = urllib.request.Request(self.made.url(address), body, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()

    def reset(self) -> None:
        self._call(self.direct, "DELETE")

    def write(self, address: Address, value: int) -> None:
        self._call(address, "POST", json.dumps([{"id": value}]).encode())

    def read(self) -> list[int]:
        return [json.loads(line)["id"] for line in self._call(self.direct, "GET").splitlines()]


TARGETS = [
    Bulk,
    Kafka,
    MariaDB,
    Nats,
    Postgres,
    PostgresCopy,
    PostgresTransaction,
    RabbitMQ,
    Redis,
]


class Wired:
    """A target behind a relay, with the points of two clean runs of three writes."""

    def __init__(self, target: Target, recorder: WireRecorder) -> None:
        self.target, self.recorder = target, recorder
        name = target.protocol
        self.relay: WireEndpoint = recorder.endpoint(name, target.made.address)
        host, _, port = self.relay.address.rpartition(":")
        self.address: Address = (host, int(port))
        target.advertise(self.address)

    def clean(self) -> CutPoints:
        runs = []
        for _ in range(2):
            self.begin()
            for value in (1, 2, 3):
                self.target.write(self.address, value)
            runs.append(self.recorder.recording())
            assert self.target.read() == [1, 2, 3]
        for run in runs:
            assert {talk.protocol for talk in run.conversations} == {self.target.protocol}
            assert {talk.problem for talk in run.conversations} == {None}
        return cut_points(*runs)

    def begin(self) -> None:
        self.target.reset()
        self.recorder.begin()


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[type[Server], Server]]:
    """Each server once, however many targets use it."""
    made = {kind: kind() for kind in {target.server for target in TARGETS}}
    yield made
    for server in made.values():
        server.close()


@pytest.fixture(params=TARGETS, ids=lambda target: target.__name__)
def wired(request: pytest.FixtureRequest, servers: dict[type[Server], Server]) -> Iterator[Wired]:
    kind: type[Target] = request.param
    pytest.importorskip(kind.library, reason=f"NOT TESTED: no {kind.library}")
    server = servers[kind.server]
    with WireRecorder() as recorder:
        wired = Wired(kind(server), recorder)
        try:
            if server.pid is None:
                server.start()
        except ServerMissingError as e:
            pytest.skip(f"NOT TESTED: {e}")
        yield wired


@pytest.mark.servers
def test_cuts_of_a_real_servers_requests_are_exact(wired: Wired) -> None:
    found = wired.clean()
    writes = {
        kind: [
            point
            for point in found.points
            if point.kind == kind and point.request.endswith(f" {wired.target.write_label}")
        ]
        for kind in ("omit", "omit-reply", "cut")
    }
    assert {kind: len(points) for kind, points in writes.items()} == dict.fromkeys(writes, 3)
    for kind, points in writes.items():
        wired.begin()
        wired.target.write(wired.address, 1)
        armed = wired.recorder.arm(points[1])
        with pytest.raises(Exception):  # noqa: B017 (each library has its own)
            wired.target.write(wired.address, 2)
        evidence = armed.heal()
        assert evidence.fired, kind
        assert evidence.times == 1
        assert wired.target.read() == ([1, 2] if kind == "omit-reply" else [1]), kind
        wired.target.write(wired.address, 3)
        assert wired.target.read()[-1] == 3


ERRORS = {
    Bulk: "429",
    Kafka: "(?i)not authorized|TopicAuthorizationFailed",
    MariaDB: "1213",
    Postgres: "deadlock detected",
    PostgresTransaction: "deadlock detected",
    Redis: "read only replica",
}


@pytest.mark.servers
def test_a_client_takes_a_refusal_for_its_servers_own_error(wired: Wired) -> None:
    kind = type(wired.target)
    if kind not in ERRORS:
        pytest.skip("how such a server refuses that is not known")
    write = next(
        point
        for point in wired.clean().points
        if point.kind == "omit" and point.request.endswith(f" {wired.target.write_label}")
    )
    wired.begin()
    armed = wired.recorder.arm(replace(write, kind="refuse"))
    with pytest.raises(Exception, match=ERRORS[kind]):
        wired.target.write(wired.address, 1)
    evidence = armed.heal()
    assert (evidence.fired, evidence.times) == (True, 1)
    assert wired.target.read() == []
    wired.target.write(wired.address, 3)
    assert wired.target.read() == [3]
