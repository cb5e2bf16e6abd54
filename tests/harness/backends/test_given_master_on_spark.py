"""Word count on a Spark master and worker that are not Bettong's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.processes.addresses import held_ports
from bettong.harness.processes.session import ProcessSession
from bettong.harness.spark import jar
from bettong.lineage.errors import UsageError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UP = re.compile(r"I have been elected leader|Successfully registered with master")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with held_ports(1) as (port,):
        yield port


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[str]:
    """A standalone cluster on loopback, as a user starts one."""
    folder = tmp_path_factory.mktemp("cluster")
    url = f"spark://127.0.0.1:{port}"
    home = jar.spark_home()
    java = [jar.java(), *jar.hooks().jvm_options, "-Xmx512m", "-cp", f"{home}/conf:{home}/jars/*"]
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    commands = {
        "Master": ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        "Worker": ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "2g",
                   "--work-dir", str(folder), url],
    }  # fmt: skip
    started = []
    try:
        for name, arguments in commands.items():
            main = f"org.apache.spark.deploy.{name.lower()}.{name}"
            log = folder / f"{name}.log"
            started.append(ProcessSession.start([*java, main, *arguments], env=env, log=log))
            while not UP.search(log.read_text()):
                with pytest.raises(subprocess.TimeoutExpired):
                    subprocess.run(["sleep", "1"], timeout=0.05, check=False)
                assert started[-1].poll() is None, log.read_text()
        yield url
    finally:
        for session in started:
            session.kill()


def test_faults_hit_what_is_ours_and_the_result_says_so(master: str, tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text(
        """
        faults:
          - crash: {node: driver, before: batch=1/commits}
          - omit-reply: {link: driver->receiver, at: batch=0/sink.commit}
        """
    )
    bettong = str(Path(sys.executable).with_name("bettong"))
    command = [bettong, "run", "word_count", "--master", master, "--faults", "faults.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"not shown: the executors of {master} are not ours" in done.stdout
    result = json.loads((tmp_path / "bettong-out" / "word_count" / "result.json").read_text())
    assert (result["verdict"], result["coverage"]["injected"]) == ("valid", 1)
    assert result["details"]["limits"][0] in result["rests_on"]


def test_executors_without_bettong_are_named(
    master: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A Python that has everything but Bettong."""
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if "bettong" not in installed.name and not installed.name.endswith(".pth"):
            (tmp_path / installed.name).symlink_to(installed)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    message = "the Python of executors on .* has no Bettong; install"
    with pytest.raises(UsageError, match=message), LocalBackend(master=master):
        pass


def test_a_master_that_is_not_there_is_one_line() -> None:
    with pytest.raises(UsageError, match="no application could be started there") as error:
        LocalBackend(master="spark://127.0.0.1:1").__enter__()
    assert "\n" not in str(error.value)
