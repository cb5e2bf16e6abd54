"""Nodes as containers: made when they are first needed, started and killed as often as asked."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bettong.harness.backends.docker.container import ContainerSession
from bettong.harness.backends.docker.engine import OWNER, owner
from bettong.harness.backends.docker.image import ensure_image, program_folders
from bettong.harness.backends.docker.networks import Network
from bettong.harness.processes.session import Launcher

_INIT = Path(__file__).with_name("init.py")
_platforms = count(1)


class DockerPlatform:
    """Containers on two networks of their own. A context manager; leaving it removes all of them.

    Args:
        client: of the engine.
        runs: the folder that all nodes share with the harness.
        fixed: nodes that listen, and so have one address for each of their incarnations.
    """

    server_options = ("--closed-network",)

    def __init__(self, client: Any, runs: Path, fixed: Sequence[str]) -> None:
        self.runs = runs
        self._client = client
        self._fixed = fixed
        self._name = f"bettong-{os.getpid()}-{next(_platforms)}"
        self._labels = {OWNER: owner()}
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._containers: dict[str, list[Any]] = {}
        self._off: dict[str, list[Any]] = {}
        self._resting: dict[str, list[Any]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> DockerPlatform:
        with contextlib.ExitStack() as stack:
            self._image = ensure_image(self._client)
            self._folders = program_folders()
            self._links = self._network(stack, "links")
            self._control = self._network(stack, "control")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def conductor(self) -> str:
        return self._control.gateway

    def node(self, name: str) -> str:
        return self._links.address(name)

    def link(self, a: str, b: str) -> str:
        return self._links.gateway

    def modules(self, node: str) -> Launcher:
        def start(command: Sequence[str], /, **how: Any) -> ContainerSession:
            return self._start(node, [sys.executable, "-m", *command], **how)

        return start

    def programs(self, node: str) -> Launcher:
        def start(command: Sequence[str], /, **how: Any) -> ContainerSession:
            return self._start(node, command, **how)

        return start

    def disconnect(self, node: str) -> str:
        """Have the engine disconnect a node's containers from the network of the links."""
        self._off[node] = list(self._containers.get(node, ()))
        for container in self._off[node]:
            self._links.network.disconnect(container)
        return f"the engine has disconnected {node} from {self._links.network.name}"

    def reconnect(self, node: str) -> None:
        for container in self._off.pop(node, ()):
            self._links.network.connect(container, ipv4_address=self._fixed_address(node))

    def _start(
        self,
        node: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        speaks: bool = False,
        hears: bool = False,
    ) -> ContainerSession:
        with self._lock:
            resting = self._resting.setdefault(node, [])
            container = resting.pop() if resting else self._create(node)
        asked = {"command": list(command), "environment": dict(env), "hears": hears}
        self._order(container.name).write_text(json.dumps(asked), encoding="utf-8")
        return ContainerSession(container, log, speaks, resting.append)

    def _create(self, node: str) -> Any:
        from docker.types import LogConfig, Mount

        name = f"{self._name}-{node}-{next(self._numbers)}"
        api = self._client.api
        host = api.create_host_config(
            log_config=LogConfig(type="none"),
            mounts=[
                *(Mount(str(p), str(p), type="bind", read_only=True) for p in self._folders),
                Mount(str(self.runs), str(self.runs), type="bind"),
            ],
            security_opt=["no-new-privileges"],
        )
        network = self._links.network
        container = self._client.containers.get(
            api.create_container(
                self._image,
                [sys.executable, "-I", "-S", str(_INIT), str(self._order(name))],
                name=name,
                hostname=node,
                user=f"{os.getuid()}:{os.getgid()}",
                working_dir=str(Path.cwd()),
                stdin_open=True,
                labels=self._labels,
                host_config=host,
                networking_config=api.create_networking_config(
                    {
                        network.name: api.create_endpoint_config(
                            ipv4_address=self._fixed_address(node)
                        )
                    }
                ),
            )["Id"]
        )
        self._stack.callback(container.remove, force=True)
        self._control.network.connect(container)
        self._containers.setdefault(node, []).append(container)
        return container

    def _fixed_address(self, node: str) -> str | None:
        return self.node(node) if node in self._fixed else None

    def _order(self, container: str) -> Path:
        return self.runs / f"{container}.json"

    def _network(self, stack: contextlib.ExitStack, name: str) -> Network:
        network = Network(self._client, f"{self._name}-{name}", self._labels)
        stack.callback(network.network.remove)
        return network
