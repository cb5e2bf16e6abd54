"""A process of a node in a container: one start of the container."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from bettong.harness.processes.session import KILL_TIMEOUT, Ended, ProcessError, first_line


class ContainerSession:
    """A started container, with the same to be done to it as to a process of this machine.

    Args:
        container: created, or stopped again after an earlier start.
        log: file to which its output is appended.
        speaks: standard output is not for the log, but to be read.
        released: told when the container has been killed and may be started again.

    Attributes:
        pid: of its first process, on this machine.
    """

    def __init__(
        self, container: Any, log: Path, speaks: bool, released: Callable[[Any], None]
    ) -> None:
        self._container = container
        self._released = released
        self._how: Ended | None = None
        self._status: int | None = None
        self._gone = threading.Event()
        api = container.client.api
        stream = api.attach_socket(
            container.id, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        )
        stream._sock.settimeout(None)
        self._requests: IO[bytes] = stream._sock.makefile("wb")
        read, write = os.pipe()
        self._answers: IO[bytes] = os.fdopen(read, "rb")
        message, reported = os.fdopen(write, "wb", buffering=0), log.open("ab", buffering=0)
        container.start()
        container.reload()
        self.pid = int(container.attrs["State"]["Pid"])
        threading.Thread(
            target=self._follow,
            args=(stream, message if speaks else reported, message, reported),
            daemon=True,
        ).start()

    @property
    def requests(self) -> IO[bytes]:
        """Standard input of a process that hears."""
        return self._requests

    @property
    def answers(self) -> IO[bytes]:
        """Standard output of a process that speaks."""
        return self._answers

    def first_line(self, timeout: float) -> bytes:
        """The first line of the answers; empty when it ends, or is silent, before."""
        return first_line(self._answers, timeout)

    def poll(self) -> int | None:
        """Exit status, or None while it runs; that of a killed one is the signal's, negative."""
        return self._status if self._gone.is_set() else None

    def kill(self) -> Ended:
        """Have the engine send SIGKILL to every process of the container."""
        from docker.errors import APIError

        if self._how is None:
            processes = len(self._processes())
            with contextlib.suppress(APIError):  # it has just ended
                self._container.kill("SIGKILL")
            if not self._gone.wait(KILL_TIMEOUT):
                raise ProcessError(f"container {self._container.name} does not die")
            assert self._status is not None
            self._how = Ended(self.pid, self._status, processes)
            self._requests.close()
            self._released(self._container)
        return self._how

    def stop(self, within: float) -> Ended:
        """Have the engine send SIGTERM to the container's first process, and SIGKILL to what there
        is of it after so many seconds."""
        from docker.errors import APIError

        with contextlib.suppress(APIError):  # it has just ended
            self._container.kill("SIGTERM")
        self._gone.wait(within)
        return self.kill()

    def pause(self) -> str:
        """Have the engine freeze every process of the container; the evidence."""
        self._container.pause()
        self._container.reload()
        count = len(self._processes())
        return f"container {self._container.name} {self._container.status}, {count} process(es)"

    def resume(self) -> None:
        """Have the engine let them go on."""
        from docker.errors import APIError

        with contextlib.suppress(APIError):  # it does not stand still
            self._container.unpause()

    def _processes(self) -> list[Any]:
        from docker.errors import APIError

        try:
            return list(self._container.top()["Processes"] or ())
        except APIError:
            return []

    def _follow(self, stream: Any, out: IO[bytes], message: IO[bytes], reported: IO[bytes]) -> None:
        """Put what it says where it belongs until it ends, and note how it has ended."""
        from docker.utils.socket import STDOUT, frames_iter

        with message, reported:
            for kind, data in frames_iter(stream, tty=False):
                with contextlib.suppress(OSError):  # nobody reads it any more
                    (out if kind == STDOUT else reported).write(data)
            status = self._container.client.api.wait(self._container.id, timeout=None)["StatusCode"]
            self._status = 128 - status if status > 128 else status
            self._gone.set()
