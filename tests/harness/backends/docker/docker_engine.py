"""A container engine for tests: the one that answers, or one that is started for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

START_S = 600.0


def client() -> Any:
    """A client of the engine that ``DOCKER_HOST`` names, which answers."""
    found = docker.from_env(timeout=30)
    found.ping()
    return found


@contextlib.contextmanager
def running_engine() -> Iterator[str]:
    """The address of an engine; skips, and says why, where none can be had."""
    with contextlib.suppress(DockerException):
        client().close()
        yield os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        return
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    dockerd = shutil.which("dockerd", path=path)
    if dockerd is None or os.geteuid() != 0:
        why = "dockerd is not installed" if dockerd is None else "only root can start dockerd"
        pytest.skip(f"NO CONTAINER ENGINE: none answers, and {why}; the docker backend is untested")
    folder = Path(tempfile.mkdtemp(prefix="bettong-dockerd-", dir="/tmp"))
    socket = f"unix://{folder}/engine.sock"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(dockerd, "--host", socket, "--pidfile", str(folder / "pid")),
                *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
                *("--bridge", "none", "--ip-forward=false"),
            ],
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        if why := _until_it_answers(process, socket):
            message = (folder / "log").read_text("utf-8", "replace")[-600:]
            pytest.skip(f"NO CONTAINER ENGINE: {why}; the docker backend is untested: {message}")
        yield socket
    finally:
        process.terminate()  # with its containerd, by itself
        process.wait(60)
        # It leaves the namespace mounted that containers on the machine's network were in.
        left = folder / "exec" / "netns" / "default"
        subprocess.run(["umount", str(left)], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _until_it_answers(process: subprocess.Popen[bytes], socket: str) -> str:
    """Wait until an engine that is starting answers; else why it does not."""
    deadline = time.monotonic() + START_S
    while process.poll() is None:
        try:
            found = docker.DockerClient(base_url=socket, timeout=30)
            found.ping()
            found.close()
        except DockerException:
            if time.monotonic() > deadline:
                return f"dockerd did not answer within {START_S:.0f} s"
            time.sleep(0.1)
        else:
            return ""
    return f"dockerd ended with status {process.returncode}"
