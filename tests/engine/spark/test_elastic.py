"""Workers join and leave while a query runs on a standalone cluster; its state goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from bettong.engine import interpret
from bettong.engine.sinks.files import read_rows
from bettong.engine.state.query import version
from bettong.engine.state.store import LocalStore
from bettong.harness.processes.addresses import held_ports
from bettong.harness.processes.session import ProcessSession
from bettong.scenarios.applications.word_count import app

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")


class Cluster:
    """A master, and workers that come and go."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.master = f"spark://127.0.0.1:{port}"
        self._running = [
            self._start(
                "master",
                "org.apache.spark.deploy.master.Master",
                *("--port", str(port)),
            )
        ]

    def _start(self, name: str, main: str, *arguments: str) -> ProcessSession:
        env = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "BETTONG_NODE": name,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        line = [SPARK_CLASS, main, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        return ProcessSession.start(line, env=env, log=self.folder / f"{name}.log")

    def join(self, name: str) -> ProcessSession:
        """A worker with two cores."""
        worker = self._start(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--cores", "2", "--memory", "1g", "-d", str(self.folder / name), self.master),
        )
        self._running.append(worker)
        return worker

    def submit(self) -> ProcessSession:
        script = Path(__file__).with_name("elastic_job.py")
        job = ProcessSession.start(
            [sys.executable, str(script), self.master, str(self.folder)],
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            log=self.folder / "driver.log",
        )
        self._running.append(job)
        return job

    def close(self) -> None:
        for session in reversed(self._running):
            session.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "notes").mkdir()
    with held_ports(1) as (port,):
        started = Cluster(tmp_path, port)
        yield started
        started.close()


def await_(what: Callable[[], bool], alive: ProcessSession, log: Path) -> None:
    """Wait for something that the processes will do."""
    deadline = time.monotonic() + 1000
    while not what():
        ended = alive.poll()
        assert ended is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)


def test_workers_join_and_leave_and_state_goes_on(cluster: Cluster) -> None:
    folder = cluster.folder
    lines: list[str] = []
    first = cluster.join("w1")
    (folder / "lines").touch()
    job = cluster.submit()
    log = folder / "driver.log"

    def send(count: int) -> int:
        """Send lines; gives how many batches there are now."""
        new = [f"they know number {n % 7}" for n in range(len(lines), len(lines) + count)]
        lines.extend(new)
        with (folder / "lines").open("a") as file:
            file.write("".join(f"{line}\n" for line in new))
        return len(lines) // 20

    def done(batches: int) -> bool:
        return (folder / "totals" / f"batch-{batches - 1:08d}.jsonl").exists()

    def ran_on(worker: str) -> bool:
        return any((folder / "notes").glob(f"*-{worker}"))

    alone = send(40)
    await_(lambda: done(alone), job, log)
    assert ran_on("w1")
    cluster.join("w2")
    while not ran_on("w2"):  # it takes part in some batch once its executor is there
        batches = send(20)
        await_(lambda: done(batches), job, log)  # noqa: B023
    first.kill()
    left = send(40)
    await_(lambda: done(left), job, log)
    cluster.join("w3")
    while not ran_on("w3"):
        batches = send(20)
        await_(lambda: done(batches), job, log)  # noqa: B023
    with (folder / "lines").open("a") as file:
        file.write("end\n")
    assert job.wait(1000) is not None
    assert log.read_text().split()[-1] == str(len(lines) // 20 + 1)
    outputs = interpret(app, {"lines": [line.encode() for line in [*lines, "end"]]}).outputs
    rows = [(row["id"], row["key"], row["data"].encode()) for row in read_rows(folder / "totals")]
    assert sorted(rows) == sorted((o.id, o.key, o.data) for o in outputs)
    manifest = version(LocalStore(folder / "checkpoint" / "state"))
    assert manifest.epoch == 1, "the driver was never started again"
    notes = {int(n.name.split("-")[0]) for n in (folder / "notes").iterdir()}
    assert notes == set(range(len(lines) // 20 + 1))
    assert subprocess.run(["pgrep", "-s", str(first.pid)], capture_output=True).returncode == 1
