"""What one request does not hold goes in several, each a step that a fault can hit alone: real
processes, links and kills, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.search.trace_lineage import lineage_of
from bettong.scenarios.corners import IN_PARTS

READ, PREPARE = "part=1/source.read", "part=1/sink.prepare"
WHOLE = "receiver.prepare/batch=0/p=0/a=0"


def run(backend: LocalBackend, folder: Path, fault: str = "") -> RunRecord:
    faults = Schedule.parse(f"faults: [{fault}]") if fault else Schedule()
    return run_once(backend, IN_PARTS, faults, folder, Asked(replay=False))


def test_each_part_is_a_step_and_its_faults_are_put_up(
    backend: LocalBackend, tmp_path: Path
) -> None:
    seen = run(backend, tmp_path / "run")
    assert seen.outcome == "good"
    of_first = [
        e.step for e in seen.events if e.phase == "before" and e.step.startswith("receiver.prepare")
    ]
    assert of_first == [
        f"{WHOLE}/part=0",
        f"{WHOLE}/part=1",
        WHOLE,
        "receiver.prepare/batch=1/p=0/a=0",
    ]
    assert {f"batch=0/p=0/a=0/{READ}", "batch=0/p=0/a=0/part=2/sink.prepare"} <= seen.step_ids
    known = lineage_of(seen.events)
    assert not known.reading.unread
    for at, link in ((READ, "driver->gateway"), (PREPARE, "driver->receiver")):
        for kind in ("omit", "omit-reply"):
            assert f"{kind}({link}, batch=0/p=0/a=0/{at})" in known.faults


@pytest.mark.parametrize("at", [READ, PREPARE])
@pytest.mark.parametrize("kind", ["omit", "omit-reply"])
def test_a_part_that_is_lost_alone_has_the_whole_asked_for_again(
    backend: LocalBackend, tmp_path: Path, at: str, kind: str
) -> None:
    link = "driver->gateway" if at == READ else "driver->receiver"
    step = f"batch=0/p=0/a=0/{at}"
    seen = run(backend, tmp_path / "run", f"{{{kind}: {{link: {link}, at: {step}}}}}")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    begun = [e.step for e in seen.events if e.phase == "before"]
    assert begun.count(step) == begun.count(step.replace("part=1/", "")) == 2
    staged = begun.count(f"{WHOLE}/part=1")
    assert staged == (1 if at == READ or kind == "omit" else 2)


@pytest.mark.parametrize("node", ["driver", "receiver"])
def test_a_crash_between_parts_loses_and_repeats_nothing(
    backend: LocalBackend, tmp_path: Path, node: str
) -> None:
    at = f"batch=0/p=0/a=0/{PREPARE}" if node == "driver" else f"{WHOLE}/part=1"
    seen = run(backend, tmp_path / "run", f"{{crash: {{node: {node}, after: {at}}}}}")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
