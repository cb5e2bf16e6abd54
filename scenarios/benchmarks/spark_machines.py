"""A Spark standalone cluster on machines of its own, and what an application on it needs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bettong.engine.address import Address
from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import ProcessSession
from bettong.harness.spark.jar import spark_home
from bettong.lineage.errors import BettongError
from bettong.scenarios.benchmarks.machines import Machines

MASTER, DRIVER, S3 = "master", "driver", "s3"
BUCKET = "states"
_UP = {
    "master": "I have been elected leader",
    "worker": "Successfully registered with master",
    "s3": "Running on",
}
_START_S = 120.0
_LOOK_S = 0.05
_QUICK = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.executor.memory": "512m",
    "spark.locality.wait": "0",
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "2s",
}
"""A machine that is gone says nothing: Spark looks for it after seconds instead of minutes."""


class MachineError(BettongError):
    """A server on a machine that did not start."""


class SparkMachines:
    """A master on a machine, workers that come and go, and a driver.

    Args:
        machines: on which everything runs.
        folder: which all of them share.
    """

    def __init__(self, machines: Machines, folder: Path) -> None:
        self.machines = machines
        self._folder = folder
        self._env = {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(spark_home()),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_CONF_DIR": str(folder / "conf"),
        }
        (folder / "conf").mkdir()
        settings = "".join(f"{name} {value}\n" for name, value in _QUICK.items())
        (folder / "conf" / "spark-defaults.conf").write_text(settings)
        address = machines.add(MASTER)
        self.url = f"spark://{address}:7077"
        self._daemon(MASTER, "master.Master", "--port", "7077")
        machines.add(DRIVER)

    def join(self, name: str, cores: int = 1) -> None:
        """A worker on a machine of its own; returns when the master knows it."""
        self.machines.add(name)
        work = ("--work-dir", str(self._work(name)), self.url)
        self._daemon(name, "worker.Worker", "--cores", str(cores), "--memory", "1g", *work)

    def has_worked(self, name: str) -> bool:
        """Whether a task has run on a worker."""
        logs = self._work(name).glob("app-*/*/stderr")
        return any("Got assigned task" in log.read_text(errors="replace") for log in logs)

    def serve_s3(self) -> str:
        """A simulated S3 on a machine of its own, which the workers that join after this, and the
        driver, know; where an application keeps its state there."""
        address = self.machines.add(S3)
        server = ["-m", "moto.server", "--host", address, "--port", "5000"]
        self._await(self.machines.start(S3, [sys.executable, *server]), S3, S3)
        self._env |= {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{address}:5000",
        }
        make = f"import boto3; boto3.client('s3').create_bucket(Bucket={BUCKET!r})"
        made = self.machines.start(DRIVER, [sys.executable, "-c", make], self._env)
        if made.wait(_START_S):
            raise MachineError(f"no bucket on {S3}: {self._last_words(DRIVER)}")
        return f"s3://{BUCKET}/state"

    def serve(self, name: str, module: str) -> Address:
        """A server of the engine's on a machine of its own, which keeps its files there."""
        address = self.machines.add(name)
        options = [
            "--listen",
            f"{address}:0",
            "--closed-network",
            "--dir",
            str(self._folder / name),
        ]
        command = [sys.executable, "-m", module, *options]
        process = self.machines.start(name, command, speaks=True)
        line = process.first_line(patience(_START_S))
        if not line:
            raise MachineError(f"{module} does not start on {name}: {self._last_words(name)}")
        return Address.parse(json.loads(line)["listening"])

    def start(self, application: str, *options: str) -> ProcessSession:
        """``bettong start`` on the driver's machine."""
        bettong = str(Path(sys.executable).with_name("bettong"))
        command = [bettong, "start", application, "--master", self.url, *options]
        env = {**self._env, "SPARK_LOCAL_IP": self.machines.addresses[DRIVER]}
        return self.machines.start(DRIVER, command, env)

    def until(self, reached: Callable[[], bool], application: ProcessSession) -> None:
        """Return when something has come about that a running application does.

        Raises MachineError when it has ended, or nothing comes for minutes.
        """
        began = time.monotonic()
        while not reached():
            if application.poll() is not None or time.monotonic() - began > patience(_START_S):
                raise MachineError(f"the driver came to nothing: {self._last_words(DRIVER)}")
            time.sleep(_LOOK_S)

    def _daemon(self, name: str, kind: str, *options: str) -> None:
        address = self.machines.addresses[name]
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        command += ["--host", address, "--webui-port", "0", *options]
        process = self.machines.start(name, command, {**self._env, "SPARK_LOCAL_IP": address})
        self._await(process, name, kind.partition(".")[0])

    def _await(self, process: ProcessSession, name: str, kind: str) -> None:
        log, began = self.machines.log(name), time.monotonic()
        while _UP[kind] not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() - began > patience(_START_S):
                raise MachineError(f"no {kind} on {name}: {self._last_words(name)}")
            time.sleep(_LOOK_S)

    def _work(self, name: str) -> Path:
        return self._folder / "work" / name

    def _last_words(self, name: str) -> str:
        return self.machines.log(name).read_text(errors="replace")[-2_000:]
