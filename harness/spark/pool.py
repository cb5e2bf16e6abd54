"""Warm spares: driver hosts that are started ahead, so that a killed one is replaced at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol

from bettong.harness.processes.session import Launcher, ProcessSession
from bettong.harness.spark import archive_maker
from bettong.harness.spark.driver import START_S, DriverError, DriverHost
from bettong.harness.spark.session import SessionConfig


class HostKind(Protocol):
    """Starts hosts; the class is one."""

    def __call__(
        self,
        config: SessionConfig,
        env: Mapping[str, str] | None,
        /,
        *,
        launch: Launcher,
        beside: Path | None,
    ) -> DriverHost: ...


class DriverPool:
    """Keeps ``size`` spares ready or starting beside the one host that is in use::

        with DriverPool(1) as pool:
            driver = pool.acquire()
            ...
            driver.kill()              # or the conductor does, by session id
            driver = pool.acquire()    # the spare; the next one starts meanwhile

    More hosts than one may be in use; they take the spares, which come back when they are released.
    Not for several threads. Attributes: ``started``, ``killed``: how many hosts so far.
    """

    def __init__(
        self,
        size: int = 1,
        config: SessionConfig | None = None,
        env: Mapping[str, str] | None = None,
        *,
        launch: Launcher = ProcessSession.start,
        beside: Path | None = None,
        host: HostKind = DriverHost,
    ) -> None:
        self._size = size
        self._refills = True
        self._config = config or SessionConfig()
        self._start_host = partial(host, self._config, env, launch=launch, beside=beside)
        self._idle: list[DriverHost] = []
        self._busy: list[DriverHost] = []
        self.started = 0
        self.killed = 0
        if self._config.short:
            archive_maker.make_in_background()
        self._refill()

    def acquire(self, timeout: float = START_S, most: float = math.inf) -> DriverHost:
        """A ready host, which is the caller's until released or killed; see
        :meth:`DriverHost.wait_ready`.

        Raises DriverError when Spark cannot be started.
        """
        host = self._idle.pop(0) if self._idle else self._start()
        try:
            host.wait_ready(timeout, most)
        except BaseException:
            self._end(host)  # nobody else would: it is neither idle nor anybody's
            raise
        self._busy.append(host)
        self._refill()
        return host

    @property
    def ready(self) -> bool:
        """Whether the next host is there, or will never be: nobody who acquires it waits long."""
        return bool(self._idle) and self._idle[0].started

    def start_ahead(self, hosts: int) -> None:
        """Start hosts until so many are there, busy ones included. The pool keeps as many from now
        on: who has needed them does so again, and to start one takes longer than most runs."""
        self._size = max(self._size, hosts - 1)
        self._refills = True
        self._refill()

    def start_no_more(self) -> None:
        """Have no spare started for a host that ends, until some are started ahead again: to start
        one takes more than all that is still to be done. Who finds none waits for one."""
        self._refills = False

    def release(self, host: DriverHost) -> None:
        """Give a host back: it is reset for the next job, or killed when that fails."""
        self._busy.remove(host)
        try:
            host.reset()
        except (DriverError, TimeoutError):
            self._end(host)
        else:
            self._idle.insert(0, host)
            while self._idle and len(self._idle) + len(self._busy) > self._size + 1:
                self._end(self._idle.pop())
        self._refill()

    def kill(self, host: DriverHost) -> None:
        """SIGKILL a host in use, or clear up after one that was killed."""
        self._busy.remove(host)
        self._end(host)
        self._refill()

    def close(self) -> None:
        """Kill every host. The pool must not be used afterwards."""
        while self._busy or self._idle:
            self._end((self._busy or self._idle).pop())

    def _start(self) -> DriverHost:
        self.started += 1
        return self._start_host()

    def _end(self, host: DriverHost) -> None:
        self.killed += 1
        host.kill()

    def _refill(self) -> None:
        while self._refills and len(self._idle) + len(self._busy) < self._size + 1:
            self._idle.append(self._start())

    def __enter__(self) -> DriverPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
