"""Sinks that are wrong about their server in one way each."""

from __future__ import annotations

from typing import Any

import redis

from bettong.harness.servers import RedisServer
from bettong.scenarios.sinks.redis import Set


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
