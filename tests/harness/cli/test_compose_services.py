"""The services of the compose file, each as a process of this machine with its very command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_service import until

from bettong.engine import interpret
from bettong.harness.processes.addresses import free_ports
from bettong.harness.spark.jar import spark_home
from bettong.scenarios.applications.word_count import app

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SERVICES: dict[str, Any] = yaml.safe_load(
    Path(__file__).parents[3].joinpath("compose.yaml").read_text("utf-8")
)["services"]
LINES = [f"they know they found it {n % 9}".encode() for n in range(400)]


PORTS = ("4000", "4001", "7077", "8090")


def _loopback(found: re.Match[str]) -> str:
    return "'127.0.0.1'" if found[0].startswith("'") else "127.0.0.1"


class Stack:
    """Where the services are on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        self._words = {
            "master": "127.0.0.1",
            "python": sys.executable,
            "spark-class": str(spark_home() / "bin" / "spark-class"),
        }

    def command(self, service: str) -> list[str]:
        """A service's command, with this machine's places for those of the containers."""
        bettong = str(Path(sys.executable).with_name("bettong"))
        asked = [*SERVICES[service].get("entrypoint", [bettong]), *SERVICES[service]["command"]]
        return [self._here(word) for word in asked]

    def _here(self, word: str) -> str:
        if word in self._words:
            return self._words[word]
        word = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word)
        word = re.sub("|".join(PORTS), lambda port: self._ports[port[0]], word)
        word = re.sub(r"0\.0\.0\.0|'master'|\b(gateway|receiver|master)(?=:\d)", _loopback, word)
        folder = str(self.folder)
        return re.sub(r"(^|=)/(data|tmp)/", rf"\g<1>{folder}/\g<2>/", word)

    @contextmanager
    def running(self, service: str, **pipes: int) -> Iterator[subprocess.Popen[str]]:
        """A service, killed afterwards."""
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_HOSTNAME": "localhost",
            "SPARK_WORKER_CORES": "2",
        }
        with (self.folder / f"{service}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(service),
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
                **pipes,  # type: ignore[call-overload]
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def is_healthy(self, service: str) -> bool:
        """What the service's health check says."""
        *_, code = SERVICES[service]["healthcheck"]["test"]
        code = self._here(code)
        return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0

    def shown(self) -> dict[str, str]:
        """What each visible output says, by its id."""
        path = self.folder / "data" / "receiver" / "word_count" / "output.jsonl"
        rows = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(row) for row in rows]
        assert len({row["id"] for row in found}) == len(found), "an output shows twice"
        return {row["id"]: row["data"] for row in found}


def test_the_services_do_every_message_once_though_the_engine_is_killed(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    with ExitStack() as services:
        for name in ("gateway", "receiver", "master"):
            process = services.enter_context(stack.running(name))
            until(lambda name=name: stack.is_healthy(name), process)  # type: ignore[misc]
        services.enter_context(stack.running("worker"))
        sender = services.enter_context(stack.running("sender", stdin=subprocess.PIPE))
        assert sender.stdin is not None
        with stack.running("engine") as engine:
            until(lambda: stack.is_healthy("engine"), engine)
            sender.stdin.write("".join(line.decode() + "\n" for line in LINES[:200]))
            sender.stdin.flush()
            until(lambda: bool(stack.shown()), engine)
        with stack.running("engine") as engine:  # which was killed, and is restarted
            sender.stdin.write("".join(line.decode() + "\n" for line in LINES[200:]))
            sender.stdin.close()
            assert engine.wait(300) == 0, (tmp_path / "engine.log").read_text()[-3000:]
    outputs = interpret(app, {"lines": LINES}).outputs
    assert stack.shown() == {str(o.id): o.data.decode() for o in outputs}
