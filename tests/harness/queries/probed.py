"""A process with the probe, and the moments at which it asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import io, json, os, sqlite3, sys, tempfile
from pathlib import Path
folder = Path(sys.argv[1])
tempfile.tempdir = sys.argv[2]
from bettong.engine.steps import Instrumentation
from bettong.harness.queries.sink import aiming, probes
seen = []
class Recorder:
    def notify(self, event):
        beside = event.detail.get("concurrent")
        told = f"{event.detail['op']} {event.detail['path'].strip('/')}"
        seen.append(f"{told}: {beside}" if beside else told)
Instrumentation.recorder = lambda self: Recorder()
probes.install()
aiming.aim(folder, Instrumentation(), elsewhere=len(sys.argv) > 4)
path = folder / "a"
exec(sys.argv[3])
aiming.aim(None, Instrumentation())
print(json.dumps(seen))
"""


def moments(tmp_path: Path, code: str, *more: str) -> list[str]:
    own, aim = tmp_path / "own", tmp_path / "aim"
    own.mkdir(exist_ok=True)
    aim.mkdir(exist_ok=True)
    command = [sys.executable, "-c", PROGRAM, str(own), str(aim), code, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


BATCH = """
import pyspark.sql.utils
import py4j.clientserver
sys.audit("socket.connect", None, None)  # as when PySpark reaches its JVM
sys.path.insert(0, sys.argv[2])
import users
each = pyspark.sql.utils.ForeachBatchFunction(None, users.each)
each.func(folder, 0)
"""


TASK = """
sys.path.insert(0, sys.argv[2])
from pyspark.logger.worker_io import capture_outputs
import users
with capture_outputs():  # as Spark's workers do around the user's code
    users.each(folder, 0)
"""
