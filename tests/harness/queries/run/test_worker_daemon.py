"""The daemon that forks the Python workers of a query's tasks, spoken to as Spark does."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

DAEMON = "bettong.harness.queries.run.worker_daemon"


def test_a_worker_that_was_just_forked_has_pandas() -> None:
    env = {**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "secret"}
    command = [sys.executable, "-m", DAEMON, "pyspark.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=env, **pipes) as daemon:
        assert daemon.stdout is not None
        (port,) = struct.unpack(">i", daemon.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port)) as worker:
            (pid,) = struct.unpack(">i", worker.recv(4, socket.MSG_WAITALL))
            loaded = Path(f"/proc/{pid}/maps").read_text()
        daemon.communicate()
    assert pid != daemon.pid
    assert "/pandas/" in loaded and "/pyarrow/" in loaded
