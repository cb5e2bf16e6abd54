"""Sinks that are wrong about their server in one way each."""

from __future__ import annotations

import json
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bettong.harness.queries.sink.contract import Environment
from bettong.harness.servers import RedisServer
from bettong.scenarios.sinks.redis import Push, Set


class ForgetfulRedis(RedisServer):
    """It keeps nothing on disk, so that a crash loses what it has answered."""

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--appendonly") + 1] = "no"
        return command


class ForgetfulSet(Set):
    """HSET by the row's id, on a Redis that forgets."""

    servers = {"redis": ForgetfulRedis}  # noqa: RUF012


class SwallowingSet(Set):
    """HSET by the row's id; when the server cannot be reached, that is logged and forgotten."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        try:
            super().apply(db, batch_id, rows)
        except redis.ConnectionError as e:
            print(f"batch {batch_id} could not be written: {e}")


class SwallowingOnceSet(SwallowingSet):
    """The same with a client that does not try again by itself."""

    @staticmethod
    def _connect(env: Environment) -> Any:
        host, port = env.address("redis")
        return redis.Redis(host, port, socket_timeout=10, retry=Retry(NoBackoff(), 0))


class RepairsOnce(Push):
    """RPUSH; a batch that is begun again has its rows removed first, and one that is begun a third
    time is taken for repaired."""

    def apply(self, db: Any, batch_id: int, rows: list[dict[str, Any]]) -> None:
        begun = db.hincrby("begun", batch_id, 1)
        if begun < 3:
            for row in rows:
                db.lrem("rows", 0, json.dumps(row))
            super().apply(db, batch_id, rows)

    _connect = staticmethod(SwallowingOnceSet._connect)
