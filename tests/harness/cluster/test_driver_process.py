"""The driver of the in-process runner, as a fork server has it ready."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = """
import sys
from pathlib import Path
import bettong.harness.cluster.driver_process
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import FileSource

ready = set(sys.modules)
from bettong.scenarios.applications.running_sum import app

folder = Path(sys.argv[1])
(folder / "amounts").write_text("all,5\\nall,10\\n")
source, sink = FileSource(folder / "amounts"), FileSink(folder / "out")
run_in_process(
    app,
    RunConfig(
        folder / "checkpoint",
        {node.name: source for node in app.sources},
        {node.name: sink for node in app.sinks},
    ),
)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - ready}))
"""


def test_a_run_of_the_driver_imports_no_library_that_was_not_ready(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not {"numpy", "pandas", "pyspark"} & set(done.stdout.split())
