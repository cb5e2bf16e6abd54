"""Word count on a Spark standalone cluster: a master, two workers, and a link for each pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.run import run_once
from bettong.scenarios.suites import TWO_WORKERS
from bettong.scenarios.word_count import WORD_COUNT

pytestmark = pytest.mark.spark

SCHEDULES = {path.stem: Schedule.read(path) for path in sorted(Path(TWO_WORKERS.path).iterdir())}


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    with LocalBackend(workers=2, spares=0) as found:
        yield found


def test_tasks_run_on_both_workers_and_reach_the_servers_from_there(
    backend: LocalBackend, tmp_path: Path
) -> None:
    seen = run_once(backend, WORD_COUNT, Schedule(), tmp_path / "run")
    assert (seen.outcome, seen.note) == ("good", "")
    tasks = {e.node for e in seen.events if e.step.endswith("/task")}
    links = {e.link for e in seen.events if e.link}
    assert tasks == {"w1", "w2"}
    assert {"w1->gateway", "w2->gateway", "w1->receiver", "w2->receiver"} & links


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_right_engine_withstands_the_failures_of_workers(
    backend: LocalBackend, tmp_path: Path, name: str
) -> None:
    seen = run_once(backend, WORD_COUNT, SCHEDULES[name], tmp_path / "run")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    assert set(seen.evidence) == set(SCHEDULES[name].ids)
