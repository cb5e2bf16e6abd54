"""Spark's Python, except that the planners of a Python data source, for which Spark starts whole
new interpreters at each start of a query, and the daemon of Spark's workers are forked by the
node's fork servers when there are any. A JVM whose driver is dead starts nothing.

Run as a file by the script that :func:`install` writes, which stands for ``python`` in
``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` and gives the real one as first argument; needs
nothing but what is compiled into Python then: to import ``json`` and ``socket`` takes longer than
all the rest, several times a run. ``TMPDIR`` is where the fork servers listen.
"""

from __future__ import annotations

import _socket
import os
import sys
from _json import encode_basestring_ascii as quoted
from _struct import pack

TYPE_CHECKING = False  # to import it from typing takes as long
if TYPE_CHECKING:
    from pathlib import Path

PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"
DAEMON = "bettong.harness.spark.python_daemon"
PLANNER_FORKS = "forks"
DAEMON_FORKS = "daemon-forks"
_FORKED = {PLANNER: PLANNER_FORKS, DAEMON: DAEMON_FORKS}
_DAEMON_OF_PLANNERS = "pyspark.daemon"
"""Which forks others, and imports for each of them what the data source is made of."""
_PLANNERS = "pyspark.sql.worker."
_LINES = 2
"""Of an answer: that it has begun, and how it has ended."""


def install(folder: Path) -> dict[str, str]:
    """Write the script into a folder; the environment that makes Spark use it."""
    import shlex  # what a run's every start of Python need not wait for

    script = folder / "python"
    real = sys.executable
    parts = " ".join(shlex.quote(p) for p in (real, "-I", "-S", __file__, real))
    script.write_text(f'#!/bin/sh\nexec {parts} "$@"\n')
    script.chmod(0o755)
    return {"PYSPARK_PYTHON": str(script), "PYSPARK_DRIVER_PYTHON": str(script)}


def ask_fork_server(path: str, module: str, arguments: list[str]) -> int | None:
    """Have the module run by the fork server: its exit status, or None when there is no fork
    server."""
    fork_server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        try:
            fork_server.connect(path)
        except OSError:
            return None
        request = _request(module, arguments)
        streams = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, pack("3i", 0, 1, 2))]
        while request:
            request = request[fork_server.sendmsg([request], streams) :]
            streams = []
        answer = b""
        while answer.count(b"\n") < _LINES and (received := fork_server.recv(4096)):
            answer += received
        return _status(answer)
    finally:
        fork_server.close()


def _request(module: str, arguments: list[str]) -> bytes:
    """As :mod:`bettong.harness.processes.fork_server` has it."""
    listed = ", ".join(map(quoted, arguments))
    environment = ", ".join(f"{quoted(n)}: {quoted(v)}" for n, v in os.environ.items())
    return (
        f'{{"module": {quoted(module)}, "arguments": [{listed}], '
        f'"environment": {{{environment}}}, "session": false}}\n'
    ).encode()


def _status(answer: bytes) -> int:
    """The status in the second line of an answer, if there is one."""
    _, _, ended = answer.partition(b"\n")
    _, named, status = ended.partition(b'"status": ')
    return int(status.rstrip(b"}\n")) if named else 1


def _forks(arguments: list[str]) -> str | None:
    """The name of the fork server that has imported what these arguments want."""
    match arguments:
        case ["-m", module, planner, *_] if module == _DAEMON_OF_PLANNERS:
            return PLANNER_FORKS if planner.startswith(_PLANNERS) else None
        case ["-m", module, *_]:
            return _FORKED.get(module)
    return None


def _driver_is_dead(fence: str) -> bool:
    """As :mod:`bettong.harness.spark.fence` has it."""
    try:
        with open(fence, "rb") as file:  # noqa: PTH123
            return file.read(4) != bytes(4)
    except OSError:
        return False


def main() -> None:
    """Run Python with the arguments of the command line."""
    real, *arguments = sys.argv[1:]
    folder = os.environ.get("TMPDIR", "/tmp")  # noqa: S108
    if _driver_is_dead(os.path.join(folder, "fence")):  # noqa: PTH118
        sys.exit("the driver is dead")
    forks = _forks(arguments)
    if forks is not None:
        path = os.path.join(folder, forks)  # noqa: PTH118
        status = ask_fork_server(path, arguments[1], arguments[2:])
        if status is not None:
            sys.exit(status)
    os.execv(real, [real, *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
