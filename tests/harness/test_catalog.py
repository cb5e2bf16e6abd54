"""The catalog: what there is to run, by name."""

from __future__ import annotations

import pytest

from bettong.harness.catalog import FORMER_NAMES, current_name, entries, find
from bettong.harness.queries.sink.loading import load_target
from bettong.harness.search.ldfi import SearchBounds
from bettong.harness.suites.jobs import plan_jobs
from bettong.harness.suites.suite import SuiteRun


def test_former_names_still_work_and_say_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert find("twins", "bench").name == "shipped-mutants"
    assert "twins is called shipped-mutants now" in capsys.readouterr().err
    jobs = plan_jobs(["broken_twins"], SuiteRun("broken_twins"), SearchBounds(), None)
    assert {job.suite.name for job in jobs if job.suite is not None} == {"mutants"}
    assert load_target("bettong.scenarios.sinks.twins:TasksAppend", {}).name == "TasksAppend"


def test_a_name_of_today_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    taken = {entry.name for entry in entries()}
    assert not taken & FORMER_NAMES.keys()
    assert {current_name(name) for name in taken} == taken
    assert not capsys.readouterr().err
