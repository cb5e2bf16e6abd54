"""What a pool knows of its hosts, without Spark: one that is not ready in time, and too many."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bettong.harness.spark.driver import DriverError
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig


class _Host:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.killed = False

    def wait_ready(self, timeout: float, most: float = math.inf) -> None:
        if most <= 0:
            raise DriverError("Spark was not ready")

    def reset(self) -> None: ...

    def kill(self) -> None:
        self.killed = True


@pytest.fixture
def pool() -> DriverPool:
    return DriverPool(0, SessionConfig(short=False), host=_Host)  # type: ignore[arg-type]


def test_a_host_that_is_not_ready_in_time_is_killed_and_forgotten(pool: DriverPool) -> None:
    for _ in range(3):
        with pytest.raises(DriverError):
            pool.acquire(most=0.0)
    assert (pool.started, pool.killed) == (3, 3)
    host = pool.acquire()
    pool.release(host)
    assert pool.acquire() is host


def test_of_more_hosts_than_are_kept_only_idle_ones_end(pool: DriverPool) -> None:
    hosts = [pool.acquire() for _ in range(3)]
    for host in hosts:
        pool.release(host)
    assert [host.killed for host in hosts] == [True, True, False]
    assert pool.acquire() is hosts[-1]


def test_no_host_is_started_for_one_that_dies_in_the_last_run(pool: DriverPool) -> None:
    first = pool.acquire()
    pool.start_ahead(2)
    pool.start_no_more()
    pool.kill(first)
    second = pool.acquire()
    assert pool.started == 2
    third = pool.acquire()  # who needs one more gets it
    assert pool.started == 3
    pool.kill(third)
    pool.kill(second)
    pool.start_ahead(1)
    assert pool.started == 5  # two are kept, as before
