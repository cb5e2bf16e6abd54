"""Word count through the whole path: sender, gateway, Spark, receiver, under real faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.search.fault_plan import parse_plan
from bettong.scenarios.suites import COMBINED
from bettong.scenarios.word_count import WORD_COUNT

pytestmark = pytest.mark.spark

# One of each kind; all of them run nightly.
AT_EVERY_CHANGE = {
    "cut_driver_gateway",
    "driver_twice_in_a_row",
    "full_disk",
    "gateway_and_sender_at_once",
    "receiver_comes_back_while_replaying",
    "two_nodes_at_once",
}
COMBINATIONS = {path.stem: Schedule.read(path) for path in sorted(Path(COMBINED.path).iterdir())}


RunOne = Callable[..., RunRecord]


@pytest.fixture
def run(spark_backend: LocalBackend, tmp_path: Path) -> RunOne:
    count = iter(range(100))

    def run(
        schedule: Schedule | str = Schedule(),  # noqa: B008 - immutable
    ) -> RunRecord:
        wanted = Schedule.parse(schedule) if isinstance(schedule, str) else schedule
        folder = tmp_path / f"run-{next(count)}"
        return run_once(spark_backend, WORD_COUNT, wanted, folder)

    return run


@pytest.fixture(scope="module")
def clean(spark_backend: LocalBackend, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run_once(spark_backend, WORD_COUNT, Schedule(), tmp_path_factory.mktemp("clean"))


def test_a_run_without_faults_is_good_and_stays_so_when_its_last_batch_is_done_again(
    clean: RunRecord,
) -> None:
    assert (clean.outcome, clean.replay_changed, clean.note) == ("good", False, "")
    taken = [e.step for e in clean.events]
    assert "replay/batch=2" in taken
    for step in (
        "gateway.append/lines/23",
        "batch=1/offsets",
        "batch=1/stage=1/p=0/a=0/task",
        "batch=1/p=1/a=0/sink.prepare",
        "receiver.commit/batch=2",
        "gateway.release/lines/23",
    ):
        assert step in taken


def test_two_clean_runs_take_the_same_steps_for_the_same_causes(
    clean: RunRecord, run: RunOne
) -> None:
    def causes(seen: RunRecord) -> set[tuple[str, frozenset[str]]]:
        return {(e.step, frozenset(e.causes)) for e in seen.events if e.phase == "after"}

    again = run()
    assert again.step_ids == clean.step_ids
    assert causes(again) == causes(clean)
    assert sorted(again.outputs) == sorted(clean.outputs)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in AT_EVERY_CHANGE else [pytest.mark.slow])
        for name in COMBINATIONS
    ],
)
def test_the_right_engine_withstands_faults_of_every_kind(run: RunOne, name: str) -> None:
    seen = run(COMBINATIONS[name])
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    assert set(seen.evidence) == set(COMBINATIONS[name].ids)


def test_a_task_s_reply_is_lost_after_what_it_asked_for_was_done(run: RunOne) -> None:
    asked, done = "batch=1/p=1/a=0/sink.prepare", "receiver.prepare/batch=1/p=1/a=0"
    seen = run(f"faults: [{{omit-reply: {{link: driver->receiver, at: {asked}}}}}]")
    assert (seen.outcome, seen.not_fired) == ("good", ())
    begun = [event.step for event in seen.events if event.phase == "before"]
    assert (begun.count(asked), begun.count(done)) == (2, 2)


def test_a_step_that_never_comes_is_not_injected(run: RunOne) -> None:
    seen = run("faults: [{crash: {node: driver, before: batch=99/sink.commit}}]")
    assert (seen.outcome, seen.judgement.verdict) == ("not-injected", "valid")
    assert seen.not_fired == ("crash(driver, before batch=99/sink.commit)",)


def test_a_dirty_predecessor_changes_nothing(
    spark_backend: LocalBackend, clean: RunRecord, run: RunOne, tmp_path: Path
) -> None:
    """A run that is broken off in the middle, with a fault in force and a node standing still."""

    schedule = Schedule.parse(
        """
        faults:
          - cut: {between: [[driver], [receiver]], from: batch=1/sink.commit}
          - pause: {node: gateway, from: batch=1/sink.commit, until: batch=99/commits}
        """
    )
    broken = run_once(
        spark_backend,
        WORD_COUNT,
        schedule,
        tmp_path / "broken",
        Asked(limits=Limits(wall_s=4)),
    )
    assert (broken.outcome, broken.anomalies) == ("unknown", ()), broken.note
    assert "in force" in broken.note
    after = run()
    assert (after.outcome, after.note) == ("good", "")
    assert after.step_ids == clean.step_ids
    assert sorted(after.outputs) == sorted(clean.outputs)


def test_each_step_s_faults_can_be_planned_from_the_trace(
    spark_backend: LocalBackend, clean: RunRecord
) -> None:
    topology = spark_backend.topology(WORD_COUNT)
    plan = parse_plan("each-step", 0, topology)
    ids = {i for schedule in plan.schedules(clean, topology) for i in schedule.ids}
    for node, step in (
        ("gateway", "gateway.append/lines/11"),
        ("driver", "batch=1/commits"),
        ("receiver", "receiver.commit/batch=1"),
    ):
        assert {f"crash({node}, {phase} {step})" for phase in ("before", "after")} <= ids


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_nothing_is_left_when_bettong_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    program = "from bettong.harness.cli import main; main()"
    command = [sys.executable, "-c", program, "run", "word_count", "--out", "out"]
    bettong = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    trace = tmp_path / "out" / "traces" / "clean-1.jsonl"
    parent = psutil.Process(bettong.pid)
    while not (trace.exists() and len(parent.children(recursive=True)) > 8):
        with pytest.raises(subprocess.TimeoutExpired):
            bettong.wait(0.05)
    started = parent.children(recursive=True)
    bettong.send_signal(number)
    bettong.wait(60)
    _, alive = psutil.wait_procs(started, timeout=600)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("bettong-")] == []
