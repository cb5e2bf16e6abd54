"""Fixtures of the pytest plugin: Spark, Toxiproxy, links that can be broken, real servers.

Each is started when a test first asks for it and lives for the session of its process, so that
workers of pytest-xdist never share one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bettong.harness.servers import Server
    from bettong.harness.toxiproxy import ProxiedLink, Toxiproxy

SERVERS = {
    "kafka": "KafkaServer",
    "mariadb": "MariaDBServer",
    "nats": "NatsServer",
    "postgres": "PostgresServer",
    "rabbitmq": "RabbitMQServer",
    "redis": "RedisServer",
}


@pytest.fixture(scope="session")
def bettong_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark session with the settings that scenarios run with, quick to start."""
    from pyspark.sql import SparkSession

    from bettong.harness.spark.session import SessionConfig

    builder = SparkSession.builder
    config = SessionConfig(hooks=False)
    for name, value in config.settings(tmp_path_factory.mktemp("bettong-spark")).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def bettong_toxiproxy() -> Iterator[Toxiproxy]:
    """A Toxiproxy server: a real one where there is one, else the embedded one."""
    from bettong.harness.toxiproxy import SupervisedToxiproxy, ToxiproxyServer

    with ToxiproxyServer() as server, SupervisedToxiproxy(server) as client:
        yield client


@pytest.fixture
def bettong_link(
    request: pytest.FixtureRequest, bettong_toxiproxy: Toxiproxy
) -> Iterator[Callable[[str], ProxiedLink]]:
    """Makes a proxied address in front of ``host:port``; it is gone after the test."""
    from bettong.harness.toxiproxy import ProxiedLink

    with contextlib.ExitStack() as stack:

        def link(upstream: str) -> ProxiedLink:
            name = f"{request.node.name}->{upstream}#{len(made)}"
            made.append(ProxiedLink.create(bettong_toxiproxy, name, upstream))
            stack.callback(bettong_toxiproxy.delete, made[-1].name)
            return made[-1]

        made: list[ProxiedLink] = []
        yield link


@pytest.fixture(scope="session")
def bettong_server() -> Iterator[Callable[[str], Server]]:
    """Starts a real server by name (``postgres``, ``redis``, ``kafka`` …), once; a test whose
    server is not installed is skipped, with the command that installs it."""
    from bettong.harness import servers
    from bettong.lineage.nearest import one_of

    started: dict[str, Server] = {}
    with contextlib.ExitStack() as stack:

        def start(name: str) -> Server:
            one_of(name, tuple(SERVERS), "server")
            if name not in started:
                try:
                    server: Server = getattr(servers, SERVERS[name])()
                    started[name] = stack.enter_context(server)
                except servers.ServerMissingError as e:
                    pytest.skip(f"{name.upper()} IS NOT INSTALLED: {e}")
            return started[name]

        yield start
