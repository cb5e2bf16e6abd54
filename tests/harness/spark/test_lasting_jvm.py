"""A JVM that outlives its driver: what dies with the driver, and that nothing is left of it."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bettong.harness.processes.session import Ended, session_members
from bettong.harness.spark import planner_python
from bettong.harness.spark.driver import DriverDiedError
from bettong.harness.spark.fence import Fence
from bettong.harness.spark.lasting_jvm import LastingJvmHost
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


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LastingJvmHost]:
    path = (str(Path(__file__).parent), *filter(None, (os.environ.get("PYTHONPATH"),)))
    python = planner_python.install(tmp_path_factory.mktemp("python"))
    env = {"PYTHONPATH": os.pathsep.join(path), **python}
    config = SessionConfig(
        "local[2,4]", {"spark.python.daemon.module": "bettong.harness.spark.python_daemon"}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "7")  # as tox does: it is not to hold for all drivers
        host = LastingJvmHost(config, env, imports=["bettong.harness.spark.python_daemon"])
    host.wait_ready()
    yield host
    host.kill()
    assert session_members(host.pid) == []


def crash(host: LastingJvmHost) -> Ended:
    """Crash the driver as soon as its JVM is between two operations on files."""
    while (ended := host.kill_driver()) is None:
        host.resume()
    return ended


def command_of(pid: int) -> list[str]:
    """Of a process that may have ended meanwhile, as one does that only forks another."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.NoSuchProcess:
        return []


def await_second_commit(folder: Path) -> None:
    while not (folder / "checkpoint" / "commits" / "1").exists():
        time.sleep(0.01)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """All files below a folder, with their sizes and when they were written."""
    found = {}
    for path in folder.rglob("*"):
        stat = path.stat()
        found[str(path.relative_to(folder))] = (stat.st_size, stat.st_mtime_ns)
    return found


def test_all_python_dies_and_the_next_driver_has_the_same_jvm(host: LastingJvmHost) -> None:
    driver, jvm = host.run("spark_jobs:pid"), host.jvm
    assert host.run("spark_jobs:in_worker", timeout=1000) == "done"
    processes = host._members()
    pending = host.submit("spark_jobs:for_ever")
    ended = crash(host)
    assert (ended.pid, ended.status, ended.spared) == (driver, -signal.SIGKILL, jvm)
    assert "without the JVM" in str(ended)
    with pytest.raises(DriverDiedError):
        pending.result(1000)
    assert not host.alive
    assert set(host._members()) == {jvm, *host._servers}
    assert ended.processes >= len(processes) - 3
    host.revive()
    assert host.jvm == jvm
    assert host.run("spark_jobs:count", {"n": 7}, timeout=1000) == 7
    assert host.run("spark_jobs:in_worker", timeout=1000) == "done"


def test_planners_are_forked_of_processes_that_have_imported_what_they_need(
    host: LastingJvmHost,
) -> None:
    host.run("bettong.harness.cluster.driver_job:warm_up", timeout=1000)
    commands = [command_of(pid) for pid in host._members()]
    planners = [c for c in commands if any(part.startswith("pyspark.sql.worker.") for part in c)]
    assert planners
    assert all(planner_python.__file__ in command for command in planners), planners


def test_nothing_is_left_of_a_dead_driver(host: LastingJvmHost, tmp_path: Path) -> None:
    host.submit("spark_jobs:litter", {"workdir": str(tmp_path)}).exception(240)
    crash(host)
    host.revive()
    assert host.run("spark_jobs:look_for_litter", timeout=1000) == CLEAN


@pytest.mark.parametrize("call", ["parquet", "stateful"])
def test_the_jvm_writes_nothing_after_the_crash(
    host: LastingJvmHost, tmp_path: Path, call: str
) -> None:
    """The query is Spark's own, and so would go on writing without any driver."""
    host.submit(f"spark_jobs:{call}", {"workdir": str(tmp_path), "batches": 1000})
    await_second_commit(tmp_path)
    crash(host)
    left = tree(tmp_path)
    host.revive()
    assert tree(tmp_path) == left
    assert host.run("spark_jobs:count", {"n": 7}, timeout=1000) == 7


def test_a_driver_goes_on_from_the_checkpoint_of_a_dead_one(
    host: LastingJvmHost, tmp_path: Path
) -> None:
    host.submit("spark_jobs:parquet", {"workdir": str(tmp_path), "batches": 1000})
    await_second_commit(tmp_path)
    crash(host)
    host.revive()
    batches = 1 + max(int(p.name) for p in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*"))
    done = {"workdir": str(tmp_path), "batches": batches + 1}
    rows = host.run("spark_jobs:parquet", done, timeout=1000)
    assert rows == sorted(set(rows))
    assert rows[: batches * 20] == list(range(batches * 20))


def test_a_jvm_amid_a_write_is_not_spared(host: LastingJvmHost) -> None:
    with (host.home / "fence").open("r+b") as jvm:
        jvm.seek(4)
        jvm.write(struct.pack(">i", 1))
        jvm.flush()
        assert host.kill_driver() is None
        jvm.seek(4)
        jvm.write(struct.pack(">i", 0))
    assert psutil.Process(host.jvm).status() == psutil.STATUS_STOPPED
    host.resume()
    assert host.run("spark_jobs:count", {"n": 7}, timeout=1000) == 7


def test_what_a_dead_driver_still_starts_comes_to_nothing(
    host: LastingJvmHost, tmp_path: Path
) -> None:
    """The interpreter that the JVM starts, as it does for planners and daemons of workers."""
    command = [host._env["PYSPARK_PYTHON"], "-c", "print('alive')"]

    def started() -> str:
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout

    fence = Fence(tmp_path)
    assert started() == "alive\n"
    fence.close()
    assert started() == ""


def test_a_reset_ends_the_workers_of_every_driver(host: LastingJvmHost, tmp_path: Path) -> None:
    for _ in range(2):
        crash(host)
        host.revive()
        host.submit("spark_jobs:litter", {"workdir": str(tmp_path)}).exception(240)
        host.reset()
        assert host.run("spark_jobs:look_for_litter", timeout=1000) == CLEAN


def test_what_the_jvm_forgets_of_a_dead_driver_is_nothing_of_its_successor_s(
    host: LastingJvmHost,
) -> None:
    """The first driver's functions are given up by the JVM when it collects them."""
    before = host.run("spark_jobs:called_back", timeout=1000)
    crash(host)
    host.revive()
    assert host.run("spark_jobs:called_back", timeout=1000) != before
    assert host.run("spark_jobs:called_back_after_a_collection", timeout=1000)


def test_hashes_of_a_driver_and_its_successor_differ(host: LastingJvmHost) -> None:
    seen = {host.run("spark_jobs:hashes", timeout=1000)["driver"]}
    workers = {host.run("spark_jobs:hashes", timeout=1000)["worker"]}
    crash(host)
    host.revive()
    seen.add(host.run("spark_jobs:hashes", timeout=1000)["driver"])
    workers.add(host.run("spark_jobs:hashes", timeout=1000)["worker"])
    assert (len(seen), len(workers)) == (2, 1)
