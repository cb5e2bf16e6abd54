"""Kafka: one KRaft broker, from Maven's jars."""

from __future__ import annotations

import socket
import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib import metadata

from bettong.harness.servers.maven import jars
from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, free_port, receive_exactly

VERSION = "4.1.0"
COORDINATES = (f"org.apache.kafka:kafka_2.13:{VERSION}",)
# The connector has no release for Spark 4.3; that for 4.2 works there.
_CONNECTOR = {"4.1": "4.1.3"}


def kafka_connector() -> Mapping[str, str]:
    """Spark's own Kafka source and sink for the pyspark that is here, as session settings.

    Raises ServerMissingError without Maven."""
    version = _CONNECTOR.get(metadata.version("pyspark")[:3], "4.2.0")
    coordinates = (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    )
    return {"spark.jars": ",".join(map(str, jars(coordinates, transitive=False)))}


class KafkaServer(Server):
    """One Kafka broker and controller.

    Kafka tells its clients where to go next, so a proxy before it needs an advertised listener:
    set ``advertised`` before the start. ``direct`` is a second listener that no proxy is before.

    Attributes:
        advertised: ``host:port`` that clients of ``address`` are sent to: a proxy's.
        direct: ``host:port`` whose clients are sent to just that.
    """

    name = "kafka"

    def __init__(self, port: int | None = None, advertised: str | None = None) -> None:
        super().__init__(port)
        self.advertised = advertised
        self.direct = f"{self.host}:{free_port()}"
        self._controller = f"{self.host}:{free_port()}"

    def prepare(self) -> None:
        self._configure()
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        config = str(self.folder / "server.properties")
        named = f"--cluster-id={cluster}"  # an id may begin with "-"
        self.run(*self._java(), "kafka.tools.StorageTool", "format", named, "-c", config)

    def command(self) -> list[str]:
        self._configure()  # the advertised address may have changed since
        return [*self._java(), "kafka.Kafka", str(self.folder / "server.properties")]

    def greet(self, connection: socket.socket) -> None:
        request = struct.pack("!hhih", 18, 0, 1, 7) + b"bettong"  # ApiVersions, version 0
        connection.sendall(struct.pack("!i", len(request)) + request)
        answer = receive_exactly(connection, 10)
        if answer[4:10] != b"\x00\x00\x00\x01\x00\x00":  # correlation id, no error
            raise ValueError(f"answered {answer!r}")

    def _java(self) -> list[str]:
        java = find_program("java", "apt-get install openjdk-17-jre-headless")
        path = ":".join(str(jar) for jar in jars(COORDINATES))
        return [java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path]

    def _configure(self) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "DIRECT",
            "listeners": (
                f"CLIENT://{self.address},DIRECT://{self.direct},CONTROLLER://{self._controller}"
            ),
            "advertised.listeners": (
                f"CLIENT://{self.advertised or self.address},DIRECT://{self.direct}"
            ),
            "listener.security.protocol.map": (
                "CLIENT:PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "log.dirs": str(self.folder / "logs"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "2000",  # how long a crashed broker is thought alive
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.folder / "server.properties").write_text(text)
