"""Warm drivers that wait for a query."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bettong.harness.processes.session import Launcher, ProcessSession
from bettong.harness.spark.driver import START_S, DriverHost
from bettong.harness.spark.pool import DriverPool, HostKind
from bettong.harness.spark.session import SessionConfig


class WarmPool(DriverPool):
    """A pool whose spares do some work ahead, so that the first run is no slower than others.

    Args:
        warm_up: what they do, as ``MODULE:FUNCTION``.
    """

    def __init__(
        self,
        size: int,
        config: SessionConfig,
        env: Mapping[str, str],
        warm_up: str,
        *,
        launch: Launcher = ProcessSession.start,
        beside: Path | None = None,
        host: HostKind = DriverHost,
    ) -> None:
        self._warm: dict[int, Future[Any]] = {}
        self._warm_up = warm_up
        super().__init__(size, config, env, launch=launch, beside=beside, host=host)

    def acquire(self, timeout: float = START_S, most: float = math.inf) -> DriverHost:
        host = super().acquire(timeout, most)
        warm = self._warm.pop(host.pid, None)
        if warm is not None:
            host.wait_done(warm, timeout, most)
        return host

    def _start(self) -> DriverHost:
        host = super()._start()
        self._warm[host.pid] = host.submit(self._warm_up)
        return host


class DriverSupply:
    """A pool of driver hosts for several threads."""

    def __init__(self, pool: DriverPool) -> None:
        self._pool = pool
        self._lock = threading.Lock()

    def acquire(self) -> DriverHost:
        """A ready host."""
        with self._lock:
            return self._pool.acquire()

    def release(self, host: DriverHost) -> None:
        """Give back a host that lives, to be reset."""
        with self._lock:
            self._pool.release(host)

    def mark_dead(self, host: DriverHost) -> None:
        """Give back a host that was killed."""
        with self._lock:
            self._pool.kill(host)
