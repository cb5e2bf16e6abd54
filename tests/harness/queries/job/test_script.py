"""What a script is asked for before it is judged, and what its runs are told by."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.queries.faults.operations import ORDINARY
from bettong.harness.queries.job.script import ScriptJob, load_script
from bettong.harness.queries.job.script_workload import ScriptWorkload
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.script import Script
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import TraceEvent


@pytest.fixture
def job(tmp_path: Path) -> ScriptJob:
    (tmp_path / "main.py").write_text("")
    (tmp_path / "reader.py").write_text("def reader(env):\n    return []\n")
    (tmp_path / "rows.jsonl").write_text('{"id": 1}\n')
    script = Script(
        str(tmp_path / "main.py"),
        inputs=(f"{tmp_path}/rows.jsonl@dir:in",),
        reader=f"{tmp_path}/reader.py:reader",
    )
    return load_script(Request(script.target, contract="job", script=script))


def begun(job: ScriptJob, folder: Path) -> ScriptWorkload:
    workload = ScriptWorkload(Target("script:main.py"), job, {})
    workload.begin("run-1", folder / "run-1", ORDINARY)
    return workload


def written(path: Path) -> TraceEvent:
    return TraceEvent("metadata", "before", "driver", 1, detail={"path": str(path / "metadata")})


@pytest.mark.parametrize("inside", [True, False])
def test_a_scripts_checkpoint_is_below_the_runs_own_folder(
    job: ScriptJob, tmp_path: Path, inside: bool
) -> None:
    workload = begun(job, tmp_path)
    workload.expect_checkpoint()  # nothing is known of it yet
    workload.observe(written(tmp_path / "run-1" / "work" / "ckpt" if inside else tmp_path / "ckpt"))
    if inside:
        workload.expect_checkpoint()
    else:
        with pytest.raises(UsageError, match=r"--set CKPT=\{work\}/ckpt"):
            workload.expect_checkpoint()
