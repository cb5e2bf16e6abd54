"""A crash or power cut of the driver that spares its JVM is the same as one that does not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from bettong.engine.storage.durability import KEEPS
from bettong.harness.api import replay, run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.remains import remains
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.mutants.shipped import MUTANTS

pytestmark = pytest.mark.spark

MOMENTS = [
    "before: metadata",
    "after: epoch=1/take",
    "before: batch=1/source.plan",
    "before: batch=1/offsets",
    "after: batch=1/offsets",
    "before: batch=1/stage=0/p=0/a=0/task",
    "after: batch=1/p=0/a=0/source.read",
    "before: batch=1/p=1/a=0/sink.prepare",
    "after: batch=1/state.manifest",
    "before: batch=1/sink.commit",
    "after: batch=1/sink.commit",
    "before: batch=1/commits",
    "after: batch=1/commits",
]
RACES = re.compile(r"batch=1/(stage=\d+/)?p=")
"""Tasks that run side by side when the driver dies: how far each has come is up to the clock."""
SPARED = "without the JVM"


@dataclass(frozen=True)
class Seen:
    """What can be told of a run."""

    outcome: str
    steps: Counter[tuple[str, int, str, str]]
    outputs: tuple[tuple[str, str], ...]
    left: bytes

    @classmethod
    def of(cls, run: RunRecord, layout: Layout) -> Seen:
        steps = Counter(
            (e.node, e.incarnation, e.phase, e.step)
            for e in run.events
            if e.incarnation > 1 or not RACES.match(e.step)
        )
        return cls(run.outcome, steps, run.outputs, remains(layout))


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_jvm_spared_by_a_crash_changes_nothing(
    spark_backend: LocalBackend, tmp_path: Path, moment: str
) -> None:
    same_with_and_without_jvm(spark_backend, tmp_path, f"crash: {{node: driver, {moment}}}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "keep"),
    [
        # Half of a manifest ends in the midst of a name that is chance.
        *(
            ("at: batch=1/state.manifest", keep)
            for keep in ("zeros", "nothing", "names", "content")
        ),
        *(("before: batch=1/commits", keep) for keep in KEEPS),
    ],
)
def test_a_jvm_spared_by_a_power_cut_changes_nothing(
    spark_backend: LocalBackend, tmp_path: Path, moment: str, keep: str
) -> None:
    cut = f"power-cut: {{node: driver, {moment}, keep: {keep}}}"
    same_with_and_without_jvm(spark_backend, tmp_path, cut)


def same_with_and_without_jvm(spark_backend: LocalBackend, folder: Path, fault: str) -> None:
    """A run with this fault is good, and the same whether the JVM is spared or killed."""
    schedule = Schedule.parse(f"faults: [{{{fault}}}]")
    seen = {}
    for spares in (True, False):
        out = folder / f"{spares}"
        run = run_once(spark_backend, COUNTING, schedule, out, Asked(spares_jvm=spares))
        assert (run.not_fired, run.jvms_spared, run.driver_crashed) == ((), int(spares), True)
        assert all((SPARED in evidence) == spares for evidence in run.evidence.values())
        seen[spares] = Seen.of(run, Layout(out))
    assert seen[True] == seen[False]
    assert seen[True].outcome == "good"


def test_two_crashes_in_turn_spare_the_same_jvm(
    spark_backend: LocalBackend, tmp_path: Path
) -> None:
    schedule = Schedule.parse(
        "faults: [{crash: {node: driver, before: batch=0/commits}}, "
        "{crash: {node: driver, after: batch=1/sink.commit}}]"
    )
    run = run_once(spark_backend, COUNTING, schedule, tmp_path, Asked(spares_jvm=True))
    assert (run.outcome, run.not_fired, run.jvms_spared) == ("good", (), 2)
    assert len({evidence.partition(SPARED)[2] for evidence in run.evidence.values()}) == 1


def test_a_mutant_is_found_and_confirmed_by_a_whole_kill(
    spark_backend: LocalBackend, tmp_path: Path
) -> None:
    (mutant,) = (found for found in MUTANTS if found.name == "state_published_late")
    result = run_scenario(mutant, mutant.shown_by(), backend=spark_backend, out=tmp_path / "run")
    assert result.verdict == "invalid"
    (example,) = result.counterexamples
    broken = next(run for run in result.runs if run.outcome == "violation")
    assert not any(SPARED in evidence for evidence in broken.evidence.values())
    again = replay(
        tmp_path / "run" / "counterexample-1.json", backend=spark_backend, out=tmp_path / "again"
    )
    assert again.verdict == "invalid"
    assert {a.kind for a in again.anomalies} == {a.kind for a in example.anomalies}
    assert not any(SPARED in text for run in again.runs for text in run.evidence.values())


@pytest.mark.slow
def test_a_verdict_says_in_how_many_runs(spark_backend: LocalBackend, tmp_path: Path) -> None:
    schedule = Schedule.parse("faults: [{crash: {node: driver, before: batch=1/commits}}]")
    result = run_scenario(COUNTING, schedule, backend=spark_backend, out=tmp_path)
    assert result.verdict == "valid"
    assert any(
        "outlived crashes and power cuts of the driver in 1 of 1 runs" in a
        for a in result.assumptions
    )
