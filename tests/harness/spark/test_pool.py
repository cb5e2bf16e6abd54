"""Driver hosts and their pool: no trace of a predecessor, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bettong.harness.processes.session import session_members
from bettong.harness.queries.run.standing import stands
from bettong.harness.spark.driver import DriverDiedError, DriverError, DriverHost, JobError
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig

pytestmark = pytest.mark.spark

CLEAN = {
    "queries": 0,
    "listeners": 0,
    "views": [],
    "in worker": False,
    "partitions": "2",
    "setting": None,
    "property": None,
    "instrumentation": None,
}


def test_a_dirty_predecessor_leaves_nothing(pool: DriverPool, tmp_path: Path) -> None:
    driver = pool.acquire()
    with pytest.raises(JobError, match="ValueError: and an error") as raised:
        driver.run("spark_jobs:litter", {"workdir": str(tmp_path)}, timeout=1000)
    assert "spark_jobs.py" in raised.value.remote_traceback
    pool.release(driver)
    again = pool.acquire()
    assert again is driver
    assert again.run("spark_jobs:look_for_litter", timeout=1000) == CLEAN
    pool.release(again)


def is_alive(pid: int) -> bool:
    """Not one that was killed, and that whoever takes over orphans has not collected yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_driver_is_replaced_by_the_spare(pool: DriverPool) -> None:
    first = pool.acquire()
    jvm = first.jvm
    pending = first.submit("time:sleep", {})
    members = session_members(first.pid)
    assert jvm in members
    pool.kill(first)
    with pytest.raises((DriverDiedError, JobError)):
        pending.result(1000)
    assert not any(is_alive(pid) for pid in members if pid != jvm)
    assert session_members(first.pid) == []
    assert not first.home.exists()
    second = pool.acquire()
    assert second.run("spark_jobs:count", {"n": 7}, timeout=1000) == 7
    pool.release(second)


def test_a_driver_says_where_a_batch_stands_that_does_not_end(
    pool: DriverPool, tmp_path: Path
) -> None:
    driver = pool.acquire()
    driver.submit("spark_jobs:waits_in_a_batch", {"workdir": str(tmp_path)})
    while not (tmp_path / "waits").exists():
        assert driver.alive
        time.sleep(0.01)
    while ".wait()" not in (told := stands(driver.where())):
        assert driver.alive  # it has made the file, and goes on from there
    pool.kill(driver)
    at, waits = told.split(", which waits in ")
    assert at.startswith("; it stands in spark_jobs.py, line ")
    assert at.endswith(", in wait: threading.Event().wait()")
    assert waits.startswith("threading.py, line ")


@pytest.mark.slow
def test_hosts_that_were_started_ahead_are_kept() -> None:
    with DriverPool(0) as pool:
        first = pool.acquire()
        pool.start_ahead(2)
        assert pool.started == 2
        pool.start_ahead(2)
        second = pool.acquire()
        assert (pool.started, second is first) == (2, False)
        pool.release(first)
        pool.release(second)
        assert (pool.started, pool.killed) == (2, 0)


def test_a_host_does_not_outlive_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from bettong.harness.spark.driver import DriverHost\n"
            "from bettong.harness.spark.session import SessionConfig\n"
            "host = DriverHost(SessionConfig()); host.wait_ready()\n"
            "print(host.pid, host.home, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    session, _ = owner.stdout.readline().split()
    members = [psutil.Process(pid) for pid in session_members(int(session))]
    assert len(members) >= 2
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    _, alive = psutil.wait_procs(members, timeout=1000)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_a_session_that_cannot_start_says_why() -> None:
    host = DriverHost(SessionConfig(master="nonsense://"))
    try:
        with pytest.raises(DriverError, match="SparkException: Master must either be"):
            host.wait_ready()
    finally:
        host.kill()
