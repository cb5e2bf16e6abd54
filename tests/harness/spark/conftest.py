"""One warm pool for all tests here: a JVM in use, and a spare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.spark.driver import DriverHost
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig


@pytest.fixture(scope="session")
def pool() -> Iterator[DriverPool]:
    config = SessionConfig(master="local[2,4]")
    path = (str(Path(__file__).parent), *filter(None, (os.environ.get("PYTHONPATH"),)))
    here = {"PYTHONPATH": os.pathsep.join(path)}
    with DriverPool(1, config, here) as pool:
        yield pool


@pytest.fixture
def driver(pool: DriverPool) -> Iterator[DriverHost]:
    driver = pool.acquire()
    yield driver
    if driver.alive:
        pool.release(driver)
    else:
        pool.kill(driver)
