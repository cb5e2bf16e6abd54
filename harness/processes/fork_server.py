"""A process that has imported what others need and forks them at once.

``python -m bettong.harness.processes.fork_server SOCKET MODULE...`` imports the modules and
listens on a Unix socket. Each connection asks for one process::

    -> {"module": NAME, "arguments": [...], "environment": {...}, "session": true}
       with its standard input, output and error as file descriptors
    <- {"pid": PID}
    <- {"status": STATUS}          when it has ended, as Popen.returncode has it

The fork server ends when its standard input does. It has one thread, so that forking it is safe.
"""

from __future__ import annotations

import atexit

# Not used here: what a process imports when it first reads its arguments, and names a host.
import encodings.idna  # noqa: F401
import gc
import importlib
import json
import locale  # noqa: F401
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

from bettong.harness.processes import clock_ahead

LONGEST_REQUEST = 1 << 20


def send_line(connection: socket.socket, value: object) -> None:
    """One JSON line; a peer that is gone does not matter."""
    try:
        connection.sendall(json.dumps(value).encode() + b"\n")
    except OSError:
        return


class ForkServer:
    """Forks processes and tells how they ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        print(json.dumps({"listening": str(path)}), flush=True)
        self._connections: dict[int, socket.socket] = {}
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._waker = wake
        signal.set_wakeup_fd(wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        """Fork what is asked for until standard input ends."""
        while True:
            ready, _, _ = select.select([self._listener, self._wake, sys.stdin], [], [])
            if self._wake in ready:
                self._wake.recv(4096)
                self._reap()
            if self._listener in ready:
                connection, _ = self._listener.accept()
                if self._take(connection):
                    return  # this is the child, and it has done its work
            if sys.stdin in ready and not os.read(0, 4096):
                self._path.unlink(missing_ok=True)
                return

    def _take(self, connection: socket.socket) -> bool:
        line, fds, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
        while line and not line.endswith(b"\n"):
            more = connection.recv(LONGEST_REQUEST)
            line = line + more if more else b""
        if not line or len(fds) != 3:
            connection.close()
            return False
        pid = os.fork()
        if pid == 0:
            for held in (self._listener, self._wake, self._waker, connection):
                held.close()
            for other in self._connections.values():
                other.close()
            become(json.loads(line), fds)
            return True
        for fd in fds:
            os.close(fd)
        self._connections[pid] = connection
        send_line(connection, {"pid": pid})
        return False

    def _reap(self) -> None:
        while self._connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._connections.pop(pid)
            send_line(connection, {"status": os.waitstatus_to_exitcode(status)})
            connection.close()


def become(request: dict[str, Any], fds: list[int]) -> None:
    """Turn the forked child into what was asked for, and run it."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["environment"])
    clock_ahead.set_ahead(int(os.environ.get(clock_ahead.ENV_AHEAD, 0)))
    sys.argv = [request["module"], *request["arguments"]]
    # The module is imported already, and run once more under another name: that is meant.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    code = 1
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()  # what it does at its end in production, it does here
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """The command line."""
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    ForkServer(Path(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
