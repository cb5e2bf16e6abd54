"""What only a start of every node after the last batch shows: real processes, killed and started
again when all is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.api import load_scenario, replay
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.carried import KILLED, POWER_CUT, Asked
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.executor import ScenarioExecutor
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.search.loop import Budget
from bettong.lineage.trace import read_trace

FAILED_REMOVAL = {"node": "gateway", "at": "gateway.release/amounts/5", "call": 4, "errno": "EIO"}
FAILED_SYNC = {"node": "gateway", "at": "gateway.release/amounts/5", "call": 2, "errno": "EIO"}
LOST_REPLY = {"omit-reply": {"link": "driver->gateway", "at": "batch=0/source.commit"}}


def run(
    backend: LocalBackend,
    folder: Path,
    name: str,
    again: set[bytes] | None,
    faults: Schedule = Schedule(),  # noqa: B008 - immutable
    power_cut: bool = False,
) -> RunRecord:
    folder.mkdir()
    asked = Asked(replay=False, again=again, power_cut=power_cut, trace=folder / "trace.jsonl")
    return run_once(backend, load_scenario(name), faults, folder / "run", asked)


@pytest.mark.parametrize(
    "name", ["counting_rolling", "counting_changed", "counting_between_folders", "live_stall"]
)
def test_the_right_engine_comes_up_and_changes_nothing(
    backend: LocalBackend, tmp_path: Path, name: str
) -> None:
    left: set[bytes] = set()
    seen = run(backend, tmp_path / "first", name, left)
    assert (seen.outcome, seen.again_changed, len(left)) == ("good", "", 1)
    assert "again" in seen.timings
    assert len(list(read_trace(tmp_path / "first" / "trace.jsonl"))) == len(seen.events)


def test_of_runs_that_have_left_the_same_one_is_started_again(
    backend: LocalBackend, tmp_path: Path
) -> None:
    left: set[bytes] = set()
    run(backend, tmp_path / "first", "counting", left)
    seen = run(backend, tmp_path / "second", "counting", left)
    assert (seen.outcome, len(left)) == ("good", 1)
    assert "again" not in seen.timings


def test_a_gateway_that_does_not_come_back_after_the_last_batch_is_stuck(
    backend: LocalBackend, tmp_path: Path
) -> None:
    name, lost = "gateway_notes_releases_twice", Schedule.from_dict({"faults": [LOST_REPLY]})
    assert run(backend, tmp_path / "before", name, None, lost).outcome == "good"
    left: set[bytes] = set()
    seen = run(backend, tmp_path / "again", name, left, lost)
    assert (seen.outcome, seen.again_changed) == ("violation", KILLED)
    assert (seen.not_fired, left) == ((), set())
    assert [a.kind for a in seen.anomalies] == ["Stuck"]
    assert not any(e.incarnation > 1 for e in seen.events if e.node == "gateway")


@pytest.mark.parametrize(
    "asked",
    [Asked(), Asked(replay=False, again=set(), power_cut=True)],
    ids=["last batch done again", "started again"],
)
def test_what_readers_lack_when_all_is_done_is_lost_although_a_new_start_brings_it(
    backend: LocalBackend, tmp_path: Path, asked: Asked
) -> None:
    scenario = load_scenario("sink_shows_rows_next_time")
    seen = run_once(backend, scenario, scenario.shown_by(), tmp_path / "run", asked)
    assert (seen.outcome, seen.not_fired) == ("violation", ())
    assert [a.messages[0] for a in seen.anomalies] == ["amounts/3", "amounts/4", "amounts/5"]
    assert {a.kind for a in seen.anomalies} == {"Loss"}


@pytest.mark.parametrize(
    ("name", "failed", "how_ended"),
    [
        ("gateway_drops_newest_first", FAILED_REMOVAL, KILLED),
        ("gateway_swallows_failed_syncs", FAILED_SYNC, POWER_CUT),
    ],
)
def test_all_is_started_on_the_files_as_they_are_and_on_what_a_power_cut_leaves(
    backend: LocalBackend, tmp_path: Path, name: str, failed: dict[str, object], how_ended: str
) -> None:
    """A power cut brings back what was removed and not synced, and so hides a gap."""
    faults = Schedule.from_dict({"faults": [{"storage": failed}]})
    seen = run(backend, tmp_path / "seen", name, set(), faults, power_cut=True)
    assert (seen.outcome, seen.again_changed, seen.not_fired) == ("violation", how_ended, ())


def test_what_a_start_has_done_to_the_files_is_gone_before_the_power_is_cut(
    backend: LocalBackend, tmp_path: Path
) -> None:
    left: set[bytes] = set()
    faults = Schedule.from_dict({"faults": [{"storage": FAILED_REMOVAL}]})
    seen = run(backend, tmp_path / "first", "merged_rolling", left, faults, power_cut=True)
    assert (seen.outcome, seen.again_changed, len(left)) == ("good", "", 3)
    seen = run(backend, tmp_path / "second", "merged_rolling", left, faults, power_cut=True)
    assert (seen.outcome, len(left), "again" in seen.timings) == ("good", 3, False)
    assert not (tmp_path / "second" / "run" / "kept").exists()


def test_what_breaks_without_a_fault_at_the_start_is_not_blamed_on_one(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("sink_forgets_on_restart")
    campaign = Campaign(backend, scenario, tmp_path / "a", scenario.messages(), replay=False)
    campaign.again = True
    executor = ScenarioExecutor(campaign, batches=2)
    clean = executor.run()
    assert (clean.outcome, executor.starts_again, campaign.again) == ("good", False, False)
    resumed = Campaign(backend, scenario, tmp_path / "b", scenario.messages(), again=True)
    later = ScenarioExecutor(resumed, batches=2)
    later.learn(clean)
    assert (later.starts_again, resumed.again) == (False, False)


def test_where_no_fault_breaks_what_the_start_does_the_start_is_the_answer(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("sink_forgets_on_restart")
    campaign = Campaign(backend, scenario, tmp_path / "out", scenario.messages())
    result = search_scenario(campaign, SearchBounds(batches=1), budget=Budget(runs=3))
    assert result.verdict == "invalid"
    (example,) = result.counterexamples
    assert example.faults == ()
    assert {a.kind for a in result.anomalies} == {"Duplicate"}
    assert "until every node was killed after the last batch" in example.words
    assert "handed over by" in example.words
    file = tmp_path / "out" / "counterexample-1.json"
    shown = replay(file, backend=backend, out=tmp_path / "replay")
    assert (shown.verdict, shown.guarantee) == ("invalid", "at-least-once")


@pytest.mark.parametrize(
    "killed",
    [
        {"node": "driver", "at": "batch=1/sink.commit", "sync": 2},
        {"node": "gateway", "at": "gateway.append/amounts/4", "sync": 2},
    ],
)
def test_names_that_a_killed_node_did_not_wait_for_are_kept(
    backend: LocalBackend, tmp_path: Path, killed: dict[str, object]
) -> None:
    faults = Schedule.from_dict({"faults": [{"crash-writing": killed}]})
    seen = run(backend, tmp_path / "run", "counting_to_arrow", set(), faults, power_cut=True)
    assert (seen.outcome, seen.not_fired) == ("good", ())
