"""Containers themselves: where they reach, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from docker_engine import client

from bettong.harness.backends.docker import DockerBackend
from bettong.harness.backends.docker.engine import OWNER

pytestmark = [pytest.mark.spark, pytest.mark.docker]

KNOCK = """
import signal, socket, sys
for address in sys.argv[1:]:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        print("open", flush=True)
    except OSError:
        print("closed", flush=True)
signal.pause()
"""
SERVE = """
import socket, sys
host, _, port = sys.argv[1].rpartition(":")
server = socket.create_server((host, int(port)))
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""


def ours() -> tuple[int, int]:
    """How many containers and networks of Bettong there are."""
    found = client()
    containers = found.api.containers(all=True, filters={"label": OWNER})
    networks = found.networks.list(filters={"label": OWNER})
    found.close()
    return len(containers), len(networks)


def bettong(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    program = "from bettong.harness.cli import main; main()"
    command = [sys.executable, "-c", program, "run", "word_count", "--backend", "docker"]
    return subprocess.Popen(
        [*command, "--runner", "in-process", "--out", str(folder / "out"), *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_nodes_reach_each_other_through_proxies_alone(engine: str, tmp_path: Path) -> None:
    env: Mapping[str, str] = dict(os.environ)
    with DockerBackend(runner="in-process") as backend:
        here, there = backend.listen["receiver"], backend.way("driver", "receiver")
        start = backend.platform.programs
        server = start("receiver")(
            [sys.executable, "-c", SERVE, here], env=env, log=tmp_path / "server", speaks=True
        )
        assert server.first_line(30) == b"listening\n"
        asking = start("driver")(
            [sys.executable, "-c", KNOCK, here, there, "127.0.0.1:1", backend.conductor.address],
            env=env,
            log=tmp_path / "client",
            speaks=True,
        )
        assert [asking.answers.readline() for _ in range(4)] == [
            b"closed\n",
            b"open\n",
            b"closed\n",
            b"open\n",
        ]
        containers = client().containers.list(filters={"label": OWNER})
        published = [c.attrs["HostConfig"]["PortBindings"] for c in containers]
        assert published == [{}, {}] or published == [None, None]
    assert ours() == (0, 0)


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_nothing_is_left_when_bettong_is_ended(
    engine: str, tmp_path: Path, number: signal.Signals
) -> None:
    endless = tmp_path / "pause.yaml"
    endless.write_text(
        "faults: [{pause: {node: gateway, from: batch=1/sink.commit, until: batch=99/commits}}]"
    )
    process = bettong(tmp_path, "--faults", str(endless))
    deadline = time.monotonic() + 60
    while ours()[0] < 4:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=600)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith("bettong-")] == []
    if number == signal.SIGKILL:  # the next one clears up
        again = bettong(tmp_path)
        _, error = again.communicate(timeout=600)
        assert again.returncode == 0, error
    assert ours() == (0, 0)
