"""The image that the Dockerfile makes, and the services of the compose file in containers of it."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import debian
import docker
import psutil
import pytest

from bettong.engine import interpret
from bettong.scenarios.applications.word_count import app

pytestmark = [pytest.mark.image, pytest.mark.docker, pytest.mark.timeout(3600)]

REPOSITORY = Path(__file__).parents[4]
LINES = [f"they know they found it {n % 9}" for n in range(400)]
PATIENCE_S = 1000.0


@pytest.fixture(scope="module")
def client(engine: str) -> Iterator[Any]:
    found = docker.DockerClient(base_url=engine, timeout=900)
    yield found
    found.close()


@pytest.fixture(scope="module")
def image(client: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the image that the Dockerfile makes."""
    base = debian.image(client, tmp_path_factory.mktemp("debian"))
    found, _ = client.images.build(
        path=str(REPOSITORY),
        buildargs={"BASE": base},
        network_mode="host",
        tag="bettong-tests",
        rm=True,
    )
    return str(found.tags[0])


class Stack:
    """The services of the compose file.

    Args:
        ask: the words of the command that compose goes by here.
    """

    def __init__(self, client: Any, image: str, ask: list[str]) -> None:
        self._client = client
        self._words = [*ask, "--project-name", "bettong-tests"]
        self._environment = {**os.environ, "IMAGE": image}

    def ask(self, *words: str) -> None:
        """What compose is told, which it does."""
        done = subprocess.run(
            [*self._words, *words],
            cwd=REPOSITORY,
            env=self._environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"

    def sender(self) -> subprocess.Popen[str]:
        """A sender of the lines that are written to it."""
        return subprocess.Popen(
            [*self._words, "run", "--rm", "-T", "sender"],
            cwd=REPOSITORY,
            env=self._environment,
            stdin=subprocess.PIPE,
            text=True,
        )

    def container(self, service: str) -> Any:
        """The container of a service, as it is now."""
        label = f"com.docker.compose.service={service}"
        (found,) = self._client.containers.list(all=True, filters={"label": label})
        return found

    def health(self, service: str) -> str:
        return str(self.container(service).attrs["State"]["Health"]["Status"])

    def kill(self, service: str) -> None:
        """SIGKILL what the service runs; its container ends with it, and is restarted."""
        (main,) = psutil.Process(self.container(service).attrs["State"]["Pid"]).children()
        main.kill()

    def _read(self, service: str, path: str) -> bytes:
        """A file in a container; empty where there is none yet, or while it grows. It is copied:
        what a command prints there has come without its beginning on a busy machine."""
        try:
            pieces, _ = self.container(service).get_archive(path)
            with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
                file = archive.extractfile(Path(path).name)
                return file.read() if file is not None else b""
        except (docker.errors.NotFound, tarfile.ReadError):
            return b""

    def shown(self) -> dict[str, str]:
        """What each visible output says, by its id."""
        written = self._read("receiver", "/data/receiver/word_count/output.jsonl")
        whole = written[: written.rfind(b"\n") + 1]
        rows = [json.loads(row) for row in whole.splitlines()]
        assert len({row["id"] for row in rows}) == len(rows), "an output shows twice"
        return {row["id"]: row["data"] for row in rows}

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            logs = self.container("engine").logs(tail=20).decode()
            assert time.monotonic() < deadline, f"nothing comes; the engine says: {logs}"
            time.sleep(0.2)


@pytest.fixture
def stack(client: Any, image: str) -> Iterator[Stack]:
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True)
    ask = ["docker", "compose"] if plugin.returncode == 0 else ["docker-compose"]
    if shutil.which(ask[0]) is None:
        pytest.skip("NO COMPOSE: docker-compose is not installed; the compose file is untested")
    found = Stack(client, image, ask)
    try:
        found.ask("up", "--detach")
        yield found
    finally:
        found.ask("down", "--volumes", "--timeout", "5")


def test_what_the_image_says_of_itself(client: Any, image: str) -> None:
    found = client.containers.run(image, ["doctor"], network_mode="none", remove=True).decode()
    for line in ("ok       Java", "ok       pyspark", "ok       User: not root"):
        assert line in found


def test_every_message_once_though_the_engine_is_killed_and_stopped(stack: Stack) -> None:
    """Killed with SIGKILL it is restarted by itself; stopped it ends with exit code 0, and the next
    start goes on."""
    stack.until(lambda: stack.health("engine") == "healthy")
    with stack.sender() as sender:
        assert sender.stdin is not None
        sender.stdin.write("".join(f"{line}\n" for line in LINES[:200]))
        sender.stdin.flush()
        stack.until(lambda: bool(stack.shown()))
        stack.kill("engine")
        stack.until(lambda: stack.container("engine").attrs["RestartCount"] == 1)
        before = len(stack.shown())
        sender.stdin.write("".join(f"{line}\n" for line in LINES[200:300]))
        sender.stdin.flush()
        stack.until(lambda: len(stack.shown()) > before)
        stack.ask("stop", "engine")
        assert stack.container("engine").attrs["State"]["ExitCode"] == 0
        sender.stdin.write("".join(f"{line}\n" for line in LINES[300:]))
        sender.stdin.close()
        assert sender.wait(PATIENCE_S) == 0
        stack.ask("start", "engine")
        outputs = interpret(app, {"lines": [line.encode() for line in LINES]}).outputs
        expected = {str(output.id): output.data.decode() for output in outputs}
        stack.until(lambda: len(stack.shown()) >= len(expected))
    assert stack.shown() == expected
