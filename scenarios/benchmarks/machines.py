"""Several machines in one: network namespaces with addresses of their own on a switch of their own.

Nothing outside of them is reached from there, and nothing there from outside. They share this
machine's files, as machines do that mount the same folder. Root makes them; Linux alone has them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from bettong.harness.processes.session import ProcessSession, session_members
from bettong.lineage.errors import UsageError

_NETWORK = "10.77.0"
_SWITCH = "switch"


class Machines:
    """Machines that come and go::

        with Machines(folder) as machines:
            worker = machines.add("w1")
            process = machines.start("w1", ["python3", "-m", "http.server"], {})
            machines.lose("w1")

    Args:
        folder: gets a log for each process, ``NAME.log`` by its machine.

    Attributes:
        addresses: of the machines that are there.

    Raises UsageError where they cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = f"bettong-{secrets.token_hex(3)}-"
        self._running: dict[str, list[ProcessSession]] = {}
        self._count = 0
        self.addresses: dict[str, str] = {}

    def __enter__(self) -> Machines:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise UsageError(
                "machines are network namespaces, which only root makes, with the command ip: "
                "run this as root, and install iproute2"
            )
        self._ip("netns", "add", self._space(_SWITCH))
        self._ip("-n", self._space(_SWITCH), "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._space(_SWITCH), "link", "set", "bridge", "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self.addresses):
            self.lose(name)
        self._ip("netns", "del", self._space(_SWITCH))

    def add(self, name: str) -> str:
        """A machine more; its address."""
        self._count += 1
        address, port = f"{_NETWORK}.{self._count}", f"port{self._count}"
        own, switch = self._space(name), self._space(_SWITCH)
        self._ip("netns", "add", own)
        self._ip(
            *("link", "add", "eth0", "netns", own, "type", "veth"),
            *("peer", "name", port, "netns", switch),
        )
        self._ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        self._ip("-n", own, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            self._ip("-n", own, "link", "set", device, "up")
        self.addresses[name] = address
        self._running[name] = []
        return address

    def start(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        speaks: bool = False,
        hears: bool = False,
    ) -> ProcessSession:
        """Start a process on a machine; it ends with the machine. ``speaks`` and ``hears`` are as
        of :meth:`ProcessSession.start`."""
        process = ProcessSession.start(
            ["ip", "netns", "exec", self._space(name), *command],
            env={**os.environ, **(env or {})},
            log=self.log(name),
            speaks=speaks,
            hears=hears,
        )
        self._running[name].append(process)
        return process

    def log(self, name: str) -> Path:
        """What the processes of a machine print."""
        return self._folder / f"{name}.log"

    def cpu_seconds(self, name: str) -> float:
        """CPU time of all that runs on a machine, and of what has ended there and was reaped."""
        spent = 0.0
        for session in self._running[name]:
            for pid in session_members(session.pid):
                with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                    spent += sum(psutil.Process(pid).cpu_times()[:4])
        return spent

    def lose(self, name: str) -> None:
        """The machine is gone: first its network, so that nobody hears of it any more, then
        everything that ran there."""
        self._ip("-n", self._space(name), "link", "set", "eth0", "down")
        for process in reversed(self._running.pop(name)):
            process.kill()
        self._ip("netns", "del", self._space(name))
        del self.addresses[name]

    def _space(self, name: str) -> str:
        return self._prefix + name

    @staticmethod
    def _ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode:
            raise UsageError(
                f"this system makes no network namespaces: ip {' '.join(words)}: "
                f"{done.stderr.strip()}"
            )
