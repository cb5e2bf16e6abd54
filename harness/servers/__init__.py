"""Real servers on loopback, each by one context manager::

with PostgresServer() as postgres:
    psycopg.connect(postgres.url())
"""

from bettong.harness.servers.bulk import BulkServer
from bettong.harness.servers.errors import ServerFailedError, ServerMissingError
from bettong.harness.servers.kafka import KafkaServer
from bettong.harness.servers.mariadb import MariaDBServer
from bettong.harness.servers.maven import jars
from bettong.harness.servers.nats import NatsServer
from bettong.harness.servers.postgres import PostgresServer
from bettong.harness.servers.rabbitmq import RabbitMQServer
from bettong.harness.servers.redis import RedisServer
from bettong.harness.servers.server import Server, free_port

__all__ = [
    "BulkServer",
    "KafkaServer",
    "MariaDBServer",
    "NatsServer",
    "PostgresServer",
    "RabbitMQServer",
    "RedisServer",
    "Server",
    "ServerFailedError",
    "ServerMissingError",
    "free_port",
    "jars",
]
