"""Spark's own steps are stopped exactly before and after what they do, for any query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from bettong.engine.steps import Instrumentation
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults import kinds as f
from bettong.harness.faults.actuator import InjectionOutcome
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.schedule import Schedule
from bettong.harness.queries.sink import aiming
from bettong.harness.spark import jar
from bettong.harness.spark.driver import DriverDiedError, DriverHost, JobError
from bettong.harness.spark.pool import DriverPool
from bettong.lineage.trace import TraceEvent

pytestmark = pytest.mark.spark

BATCHES = 3
LINES = [
    " ".join(str(v) for v in range(batch * 20, batch * 20 + 20)) for batch in range(BATCHES + 1)
][:BATCHES]


class KillsDriver:
    """The driver is the only node, and is killed for real."""

    def __init__(self, driver: DriverHost) -> None:
        self.driver = driver

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        return 1, InjectionOutcome(True, str(self.driver.kill()))

    def restart(self, node: str) -> None:
        raise NotImplementedError

    cut_power = pause = resume = arm = heal = restart  # type: ignore[assignment]


@pytest.fixture(scope="module")
def conductor() -> Iterator[Conductor]:
    with Conductor() as conductor:
        yield conductor


def normalised(event: TraceEvent) -> TraceEvent:
    from dataclasses import replace

    return replace(event, step=re.sub(r"stage=\d+", "stage=0", event.step))


def start(
    conductor: Conductor, driver: DriverHost, job: str, workdir: Path, *faults: Fault
) -> tuple[RunControl, Future[Any]]:
    control = RunControl("test", KillsDriver(driver), Schedule(faults), None, normalised)
    conductor.begin(control)
    instrumentation = Instrumentation("test", "driver", 1, conductor.address)
    args = {"workdir": str(workdir), "batches": BATCHES}
    return control, driver.submit(f"spark_jobs:{job}", args, instrumentation)


def reported(control: RunControl) -> list[str]:
    return [f"{e.phase} {e.step}" for e in control.events if not e.step.startswith("fault/")]


def crash(point: str, phase: PointPhase) -> f.Crash:
    return f.Crash("driver", Point(point, phase), restart=False)


TASK = "batch=1/stage=0/p=1/a=0/task"


def nightly(*values: object) -> ParameterSet:
    """A moment that differs from one at every change by the step's name or its phase alone: one
    class stops before and after each file of a checkpoint, another around each task. A full disk
    and a task that is tried again stop at these steps at every change too."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("step", "phase", "offsets", "commits", "replayed"),
    [
        nightly("batch=1/offsets", "before", 1, 1, LINES),
        ("batch=1/offsets", "after", 2, 1, LINES),
        (TASK, "before", 2, 1, LINES),
        nightly(TASK, "after", 2, 1, LINES),
        ("batch=1/commits", "before", 2, 1, [LINES[0], LINES[1], *LINES[1:]]),
        nightly("batch=1/commits", "after", 2, 2, LINES),
    ],
)
def test_driver_dies_exactly_there(
    conductor: Conductor,
    pool: DriverPool,
    driver: DriverHost,
    tmp_path: Path,
    step: str,
    phase: PointPhase,
    offsets: int,
    commits: int,
    replayed: list[str],
) -> None:
    control, job = start(conductor, driver, "foreach_batch", tmp_path, crash(step, phase))
    with pytest.raises(DriverDiedError):
        job.result(1000)
    conductor.end(control)
    assert reported(control)[-1] == f"{phase} {step}" or "task" in step
    assert control.not_fired == ()

    def logged(name: str) -> int:
        return len([p for p in (tmp_path / "checkpoint" / name).iterdir() if p.name.isdigit()])

    assert (logged("offsets"), logged("commits")) == (offsets, commits)

    exempt = pool.acquire()
    control, job = start(conductor, exempt, "foreach_batch", tmp_path)
    job.result(1000)
    conductor.end(control)
    pool.release(exempt)
    assert (tmp_path / "out").read_text().splitlines()[: len(replayed)] == replayed


def test_file_sink_dies_before_its_manifest(
    conductor: Conductor, pool: DriverPool, driver: DriverHost, tmp_path: Path
) -> None:
    control, job = start(
        conductor, driver, "parquet", tmp_path, crash("batch=1/_spark_metadata", "before")
    )
    with pytest.raises(DriverDiedError):
        job.result(1000)
    conductor.end(control)
    assert not (tmp_path / "out" / "_spark_metadata" / "1").exists()
    files = len(list((tmp_path / "out").glob("*.parquet")))
    assert files == 4  # those of batch 1 are there, but no reader of the log sees them

    exempt = pool.acquire()
    control, job = start(conductor, exempt, "parquet", tmp_path)
    seen = job.result(1000)
    conductor.end(control)
    pool.release(exempt)
    assert seen[: BATCHES * 20] == list(range(BATCHES * 20))
    assert len(list((tmp_path / "out").glob("*.parquet"))) > 2 * BATCHES


def test_state_files_are_steps(conductor: Conductor, driver: DriverHost, tmp_path: Path) -> None:
    control, job = start(conductor, driver, "stateful", tmp_path)
    job.result(1000)
    conductor.end(control)
    steps = reported(control)
    for batch in range(BATCHES):
        for partition in range(2):
            delta = f"batch={batch}/state/op=0/p={partition}/delta"
            assert steps.count(f"before {delta}") == steps.count(f"after {delta}") == 1
            assert steps.index(f"after {delta}") < steps.index(f"before batch={batch}/commits")


def test_full_disk_at_offsets(conductor: Conductor, driver: DriverHost, tmp_path: Path) -> None:
    full = f.Storage(Point("batch=1/offsets"))
    control, job = start(conductor, driver, "foreach_batch", tmp_path, full)
    with pytest.raises(JobError, match="No space left on device"):
        job.result(1000)
    conductor.end(control)
    assert not (tmp_path / "checkpoint" / "offsets" / "1").exists()
    assert (tmp_path / "out").read_text().splitlines() == LINES[:1]


def test_failed_attempt_is_tried_again(
    conductor: Conductor, driver: DriverHost, tmp_path: Path
) -> None:
    class FailsAfterItsWork(RunControl):
        def notify(self, connection_id: int, event: TraceEvent) -> Any:
            from bettong.harness.conductor.injector import Go

            super().notify(connection_id, event)
            here = normalised(event).step == TASK and event.phase == "after"
            return Go(5) if here else Go()

    control = FailsAfterItsWork("test", KillsDriver(driver), normalise=normalised)
    conductor.begin(control)
    instrumentation = Instrumentation("test", "driver", 1, conductor.address)
    args = {"workdir": str(tmp_path), "batches": BATCHES}
    driver.submit("spark_jobs:foreach_batch", args, instrumentation).result(1000)
    conductor.end(control)
    steps = reported(control)
    assert steps.index(f"after {TASK}") < steps.index(f"after {TASK.replace('a=0', 'a=1')}")
    assert (tmp_path / "out").read_text().splitlines()[:BATCHES] == LINES


def test_nothing_is_reported_when_not_configured(
    conductor: Conductor, driver: DriverHost, tmp_path: Path
) -> None:
    control = RunControl("test", KillsDriver(driver))
    conductor.begin(control)
    args = {"workdir": str(tmp_path), "batches": 1}
    driver.run("spark_jobs:foreach_batch", args, timeout=1000)
    conductor.end(control)
    assert control.events == []


def test_a_task_of_a_run_that_is_over_ends_when_it_is_killed_before_spark_knows_its_thread(
    conductor: Conductor, driver: DriverHost
) -> None:
    instrumentation = Instrumentation("nobody's", "driver", 1, conductor.address)
    assert driver.run("spark_jobs:killed_unseen", {}, instrumentation, timeout=1000) == 0


def test_local_files_are_made_with_their_modes(driver: DriverHost, tmp_path: Path) -> None:
    args = {"workdir": str(tmp_path)}
    found = driver.run("spark_jobs:modes_of_local_files", args, timeout=1000)
    assert found == [jar.FILES, "644", "640", "1750"]


def test_what_a_jvm_changes_elsewhere_than_in_its_temporary_files_is_noted(
    driver: DriverHost, tmp_path: Path
) -> None:
    notes = driver.home / "bettong-outside.txt"
    notes.unlink(missing_ok=True)
    driver.run("spark_jobs:modes_of_local_files", {"workdir": str(tmp_path)}, timeout=1000)
    noted = aiming.outside(tmp_path / "run", driver.home)
    assert noted
    assert {Path(path).parent for path in noted} <= {tmp_path, *tmp_path.rglob("*")}
    assert aiming.outside(tmp_path, driver.home) == []
