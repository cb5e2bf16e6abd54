from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.backends.choice import BackendChoice
from bettong.harness.cli.output import exit_code
from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import SearchBounds, bounds_of
from bettong.harness.search.fault_plan import FaultPlan
from bettong.harness.strategies.data import WORD_COUNT
from bettong.harness.suites.jobs import carry_out, plan_jobs, share
from bettong.harness.suites.suite import Shard, SuiteRun, counted, excused, find_suites, read_suites
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, Result, Verdict
from bettong.reports import join

GOOD = """
[suite.nightly]
seed = 7
[[suite.nightly.run]]
name = "word_count"
faults = "each-step"
budget = "10m"
[[suite.nightly.run]]
name = "other"
faults = "ldfi"
expect = "at-least-once"
seed = 8
crashes = 2
[suite.nightly.quarantine]
other = { reason = "waits", until = 2026-12-31 }
"""


def suites(tmp_path: Path, text: str, name: str = "bettong.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_suite_of_its_own_file(tmp_path: Path) -> None:
    (suite,) = read_suites(suites(tmp_path, GOOD)).values()
    assert suite.runs == (
        SuiteRun("word_count", "each-step", budget="10m", seed=7),
        SuiteRun("other", "ldfi", expect="at-least-once", seed=8, crashes=2),
    )
    assert suite.quarantine["other"].holds(date(2026, 12, 31))
    assert not suite.quarantine["other"].holds(date(2027, 1, 1))


def test_the_nearest_file_above_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_suites(inner) == {}
    suites(tmp_path, GOOD.replace("[suite", "[tool.bettong.suite").replace(
        "[[suite", "[[tool.bettong.suite"), "pyproject.toml")  # fmt: skip
    assert list(find_suites(inner)) == ["nightly"]
    suites(tmp_path / "a", GOOD.replace("nightly", "nearer"))
    assert list(find_suites(inner)) == ["nearer"]


def test_a_suite_in_two_files_is_refused(tmp_path: Path) -> None:
    own = suites(tmp_path, GOOD)
    text = GOOD.replace("[suite", "[tool.bettong.suite").replace("[[suite", "[[tool.bettong.suite")
    project = suites(tmp_path, text, "pyproject.toml")
    with pytest.raises(UsageError, match=f"suite nightly is in {own} and in {project}"):
        find_suites(tmp_path)
    suites(tmp_path, GOOD.replace("nightly", "daily"))
    assert set(find_suites(tmp_path)) == {"nightly", "daily"}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (("faults =", "fautls ="), "faults"),
        (('faults = "ldfi"', 'faults = "each-step"'), "crashes is for searches by lineage"),
        (('faults = "ldfi"', 'bounds = "quick"'), "bounds is for searches by lineage"),
        (('expect = "at-least-once"', 'expect = "atleast-once"'), "at-least-once"),
        (("seed = 8", 'seed = "8"'), "int is wanted"),
        (("crashes = 2", "crashes = true"), "int is wanted"),
        (("crashes = 2", "crashes = -1"), "crashes=-1: a whole number from 0"),
        (("crashes = 2", "batches = 0"), "batches=0: a whole number from 1"),
        (("until = 2026-12-31", "until = 2026-12-31T00:00:00"), "the last day is wanted"),
        (('name = "other"', ""), "name is missing"),
        (('reason = "waits", ', ""), "a reason and an end"),
        (("until = 2026-12-31", 'until = "soon"'), "date is wanted"),
        (("other = {", "othre = {"), "other"),
        (("[suite.nightly]", "[suites.nightly]"), "suite"),
        (("seed = 7", "seed = "), "cannot read suites"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], reported: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(UsageError, match=reported):
        read_suites(suites(tmp_path, text))


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "/"])
def test_shards_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(UsageError, match="write I/N"):
        Shard.parse(text)


def test_quarantine_excuses_until_its_last_day(tmp_path: Path) -> None:
    (suite,) = read_suites(suites(tmp_path, GOOD)).values()
    bad = Result(scenario="other", verdict="invalid", reason="1 Loss")
    excuse = excused(bad, suite.quarantine, date(2026, 12, 31))
    assert excuse.verdict == "invalid"
    assert "in quarantine: waits, until 2026-12-31" in excuse.reason
    assert counted([excuse, Result(scenario="x", verdict="valid")])[0].scenario == "x"
    late = excused(bad, suite.quarantine, date(2027, 1, 1))
    assert counted([late]) == [late]
    assert "has ended" in late.reason
    other = Result(scenario="word_count", verdict="invalid")
    assert excused(other, suite.quarantine, date(2026, 1, 1)) is other


def parts_of(suite_file: Path, monkeypatch: pytest.MonkeyPatch, of: int) -> list[list[Any]]:
    monkeypatch.chdir(suite_file.parent)
    jobs = plan_jobs(["nightly"], SuiteRun(""), SearchBounds(), None)
    return [share(jobs, Shard(i, of)) for i in range(1, of + 1)]


SHARED = """
[[suite.nightly.run]]
name = "word_count"
faults = "random:7"
[[suite.nightly.run]]
name = "word_count"
faults = "each-step"
[[suite.nightly.run]]
name = "word_count"
[[suite.nightly.run]]
name = "counting"
faults = "ldfi"
"""


def test_shards_are_the_suite_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(suites(tmp_path, SHARED), monkeypatch, 2)
    reported = [[label["entry"]["number"] for _, label in part] for part in parts]
    assert reported == [[1, 2, 3], [1, 2, 4]]
    wanted = [job.plan.wanted for part in parts for job, _ in part[:1]]
    assert sorted(wanted) == [3, 4]


def test_shards_say_what_they_were_asked_and_of_which_code(tmp_path: Path) -> None:
    def question(shard: Shard, **asked: Any) -> str:
        options = SuiteRun("", faults="each-step", **asked)
        ((_, label),) = share(plan_jobs(["word_count"], options, SearchBounds(), None), shard)
        return str(label["shard"]["question"])

    text = tmp_path / "lines.txt"
    text.write_text("a b\n")
    asked = [question(Shard(1, 2)), question(Shard(1, 2), workers=1)]
    asked.append(question(Shard(1, 2), input=str(text)))
    assert question(Shard(2, 2)) == asked[0]
    elsewhere = tmp_path / "copy.txt"
    elsewhere.write_text("a b\n")
    assert question(Shard(2, 2), input=str(elsewhere)) == asked[2]
    text.write_text("a c\n")
    asked.append(question(Shard(1, 2), input=str(text)))
    assert len(set(asked)) == len(asked)


@given(st.integers(0, 40), st.integers(1, 9))
def test_shards_of_schedules_are_the_whole_once(count: int, of: int) -> None:
    schedules = [
        Schedule((Crash("driver", Point(f"batch={n}/commits"), True),)) for n in range(count)
    ]
    plan = FaultPlan.of(*schedules)
    clean = cast(RunRecord, None)  # given schedules need no clean run
    parts = [replace(plan, share=(i, of)).schedules(clean, WORD_COUNT) for i in range(1, of + 1)]
    assert sorted(s.ids for part in parts for s in part) == sorted(s.ids for s in schedules)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_bounds_of_a_search_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = SHARED + 'bounds = "quick"\npauses = 0\n'
    (part,) = parts_of(suites(tmp_path, own), monkeypatch, 1)
    assert part[3][0].plan == bounds_of("quick", {"pauses": 0})
    with pytest.raises(UsageError, match=r"bounds.*did you mean quick"):
        parts_of(suites(tmp_path, SHARED + 'bounds = "quik"'), monkeypatch, 1)


def test_what_shards_bring_is_joined_and_what_is_missing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_of(suites(tmp_path, SHARED), monkeypatch, 3)
    brought = [
        Result(scenario=job.scenario.name, verdict="valid", details=dict(label))
        for part in parts
        for job, label in part
    ]
    assert len(brought) == 3 * 2 + 2
    joined = join(brought)
    assert [r.verdict for r in joined] == ["valid"] * 4
    assert [r.scenario for r in joined] == ["word_count"] * 3 + ["counting"]
    without = [r for r in brought if r.scenario != "counting"]
    assert [(r.scenario, r.verdict) for r in join(without)][3:] == [("entry 4 of 4", "unknown")]
    assert join(brought[1:])[0].verdict == "unknown"


@pytest.mark.parametrize(("others", "code"), [("valid", 2), ("unknown", 2), ("invalid", 1)])
def test_one_that_cannot_be_run_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: Verdict, code: int
) -> None:
    suites(tmp_path, "".join(f'[[suite.s.run]]\nname = "{n}"\n' for n in ("counting", "doubling")))
    monkeypatch.chdir(tmp_path)
    jobs = plan_jobs(["s"], SuiteRun(""), SearchBounds(), None)

    def run(scenario: Scenario, *_: object, **options: object) -> Result:
        if scenario.name == "counting":
            raise UsageError("step pre failed on message orders/5")
        loss = (Anomaly("Loss", ("m/0",)),) if others == "invalid" else ()
        return Result(scenario.name, others, anomalies=loss)

    monkeypatch.setattr("bettong.harness.suites.jobs.run_scenario", run)
    monkeypatch.setattr(BackendChoice, "backend", lambda *_: nullcontext())
    failed, other = carry_out(jobs, Shard())
    assert (failed.scenario, failed.verdict) == ("counting", "unknown")
    assert failed.reason == "it could not be run: step pre failed on message orders/5"
    assert Result.read(jobs[0].out / "result.json").reason == failed.reason
    assert (other.scenario, other.verdict) == ("doubling", others)
    assert exit_code([failed, other]) == code
    with pytest.raises(UsageError, match="orders/5"):
        carry_out(jobs[:1], Shard())


def test_one_search_is_not_split() -> None:
    jobs = plan_jobs(["word_count"], SuiteRun("", faults="ldfi"), SearchBounds(), None)
    with pytest.raises(UsageError, match="cannot be split"):
        share(jobs, Shard(1, 2))
    assert share(jobs, Shard()) == [(jobs[0], {})]


@pytest.mark.parametrize("faults", ["none", "each-step"])
def test_bounds_of_a_search_that_is_not_asked_for_are_no_pass(faults: str) -> None:
    for bound, reach in (
        ({"crashes": 1}, SearchBounds()),
        ({"bounds": "thorough"}, SearchBounds()),
        ({}, SearchBounds(find_all=True)),
        ({}, SearchBounds(exhaustive="singles")),
    ):
        with pytest.raises(UsageError, match="is for searches by lineage; with --faults"):
            plan_jobs(["word_count"], SuiteRun("", faults=faults, **bound), reach, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "reach"),
    [
        ({"faults": "ldfi"}, SearchBounds()),
        ({"crashes": 1}, SearchBounds()),
        ({"expect": "at-most-once"}, SearchBounds()),
        ({"budget": "1m"}, SearchBounds()),
        ({"workers": 2}, SearchBounds()),
        ({}, SearchBounds(find_all=True)),
    ],
)
def test_options_that_a_suite_would_pass_over_are_refused(
    option: Mapping[str, Any], reach: SearchBounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites(tmp_path, '[[suite.nightly.run]]\nname = "word_count"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="suite nightly has its own options"):
        plan_jobs(["nightly"], SuiteRun("", **option), reach, None)


def test_a_schedule_of_no_fault_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("faults: []\n")
    for faults in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(UsageError, match="has no fault"):
            plan_jobs(["word_count"], SuiteRun("", faults=str(faults)), SearchBounds(), None)
