"""However a run ends, its result says what happened: real processes that die, do not come back,
stand still for good, or leave rows that nobody can read."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bettong.engine.endpoints import kept_as
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import Noted, Row
from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.course import Limits
from bettong.harness.runs.observed import visible
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING


def run(
    backend: LocalBackend, folder: Path, name: str, faults: str = "", idle_s: float = 60
) -> RunRecord:
    scenario = load_scenario(name)
    schedule = Schedule.parse(f"faults: [{faults}]") if faults else scenario.shown_by()
    return run_once(
        backend, scenario, schedule, folder, Asked(replay=False, limits=Limits(idle_s=idle_s))
    )


def kinds(seen: RunRecord) -> set[str]:
    return {anomaly.kind for anomaly in seen.anomalies}


def anomaly(seen: RunRecord, kind: str) -> Any:
    return next(a for a in seen.anomalies if a.kind == kind)


def test_a_node_that_does_not_come_back_is_stuck_with_its_own_last_words(
    backend: LocalBackend, tmp_path: Path
) -> None:
    seen = run(backend, tmp_path / "run", "gateway_notes_releases_twice")
    assert seen.outcome == "violation"
    found = anomaly(seen, "Stuck")
    assert "does not follow from those before" in found.note
    nodes = found.seen["nodes"]
    assert nodes["gateway"]["state"] == "ended with status 2"
    assert "does not follow from those before" in nodes["gateway"]["last_words"]
    assert nodes["driver"]["last_step"].endswith(" batch=0/source.commit")
    assert nodes["sender"]["last_step"] == "after sender.forget/amounts/end"


def test_a_process_that_ends_by_itself_is_an_anomaly_also_when_it_comes_back(
    backend: LocalBackend, tmp_path: Path
) -> None:
    seen = run(backend, tmp_path / "run", "gateway_ends_on_repeated_release")
    assert (seen.outcome, kinds(seen)) == ("violation", {"Died"})
    assert anomaly(seen, "Died").seen["status"] == 70
    assert seen.judgement.guarantee == "effectively-once"  # of the outputs, once it is back


def test_a_driver_whose_disk_fails_may_end(backend: LocalBackend, tmp_path: Path) -> None:
    fault = "{storage: {before: batch=0/state.manifest}}"
    seen = run(backend, tmp_path / "run", "counting", fault)
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert "driver ended with status 1 and was started again: a driver whose disk" in seen.note


def test_a_fault_that_is_still_in_force_proves_nothing(
    backend: LocalBackend, tmp_path: Path
) -> None:
    fault = "{pause: {node: gateway, from: gateway.append/amounts/2, until: batch=0/source.commit}}"
    seen = run(backend, tmp_path / "run", "counting", fault, idle_s=2)
    assert seen.outcome == "unknown"
    assert "was still in force when the run ended" in seen.note


def test_a_row_that_cannot_be_read_is_an_anomaly_and_the_others_are_read(
    backend: LocalBackend, tmp_path: Path
) -> None:
    app = COUNTING.load_application()
    layout = Layout(tmp_path)
    folder = layout.receiver / kept_as(app, app.sinks[0].name)
    folder.mkdir(parents=True)
    rows = b'{"id": "amounts/0", "data": "5"}\nnot json\n{"id": "amounts/1", "da'
    (folder / "output.jsonl").write_bytes(rows)
    (folder / "output.length").write_text(f"{len(rows)}\n")
    seen = visible(app, COUNTING, layout, "run", backend)
    assert [record.id for record in seen.records] == ["amounts/0"]
    assert [a.kind for a in seen.unreadable] == ["Corrupt", "Torn"]
    whole = rows[: rows.index(b"\n") + 1]
    (folder / "output.jsonl").write_bytes(whole)
    seen = visible(app, COUNTING, layout, "run", backend)
    assert [a.kind for a in seen.unreadable] == ["Corrupt"]
    (missing,) = seen.unreadable
    assert f"ends {len(rows) - len(whole)} bytes before" in missing.seen
    (folder / "output.length").write_text("many\n")
    seen = visible(app, COUNTING, layout, "run", backend)
    assert [a.kind for a in seen.unreadable] == ["Corrupt"]


def test_arrow_files_that_cannot_be_read_are_an_anomaly(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting_between_folders")
    app = scenario.load_application()
    layout = Layout(tmp_path)
    sink = ArrowSink(layout.files / app.sinks[0].name)
    sink.open(app.name, 1, Noted(""))
    for batch, key in enumerate(("one", None)):
        rows = [Row(f"amounts/{batch}", key, b"5")]
        sink.prepare(1, batch, 0, 0, rows, Noted(""))
        sink.commit(1, batch, {0: 0}, Noted(""))
    seen = visible(app, scenario, layout, "run", backend)
    assert [(r.id, r.key, r.value) for r in seen.records] == [
        ("amounts/0", "one", "5"),
        ("amounts/1", None, "5"),
    ]
    assert seen.unreadable == ()
    (torn,) = (sink.directory / "rows").glob("000001-000000000001-*.arrow")
    torn.write_bytes(torn.read_bytes()[:100])
    seen = visible(app, scenario, layout, "run", backend)
    assert [record.id for record in seen.records] == ["amounts/0"]
    assert [a.kind for a in seen.unreadable] == ["Corrupt"]
    torn.unlink()
    assert [a.kind for a in visible(app, scenario, layout, "run", backend).unreadable] == [
        "Corrupt"
    ]


@pytest.mark.parametrize("faults", ["none", "ldfi"])
def test_a_budget_of_time_ends_a_run_that_goes_on(
    backend: LocalBackend, tmp_path: Path, faults: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([False] * 2)
    monkeypatch.setattr(Limits, "over", property(lambda _: next(looks, True)))
    result = run_scenario("counting", faults, backend=backend, out=tmp_path)
    assert result.verdict == "unknown"
    assert "the budget ended within this run" in result.reason
    assert not result.anomalies
    assert not result.counterexamples


@pytest.mark.parametrize(
    "then",
    [
        {"pause": {"node": "driver", "from": "batch=1/source.plan#2", "replace": True}},
        {"crash": {"node": "driver", "before": "batch=1/source.plan#2"}},
    ],
    ids=["replaced", "killed"],
)
def test_a_partition_of_some_tries_ends_when_another_driver_begins(
    backend: LocalBackend, tmp_path: Path, then: dict[str, object]
) -> None:
    """It asks how far the streams are before it tries anything."""
    cut = {"between": [["gateway"], ["driver"]], "from": "batch=1/source.plan", "tries": 2}
    schedule = Schedule.from_dict({"faults": [{"cut": cut}, then]})
    seen = run_once(backend, load_scenario("counting"), schedule, tmp_path / "run")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note


def test_a_budget_that_is_over_starts_nothing(backend: LocalBackend, tmp_path: Path) -> None:
    scenario = load_scenario("counting")
    limits = Limits(until=time.monotonic())
    seen = run_once(backend, scenario, Schedule(), tmp_path / "run", Asked(limits=limits))
    assert (seen.outcome, seen.events) == ("unknown", [])
    assert "the budget ended" in seen.note


@pytest.mark.parametrize(("times", "outcome"), [(1, "violation"), (2, "good")])
def test_a_run_that_takes_one_step_again_and_again_is_stuck(
    backend: LocalBackend, tmp_path: Path, times: int, outcome: str
) -> None:
    """Others may go on all the same, and take steps that are new."""
    faults = [{"crash": {"node": "gateway", "before": "gateway.append/amounts/2"}}]
    asked = Asked(replay=False, limits=Limits(times=times))
    schedule = Schedule.from_dict({"faults": faults})
    seen = run_once(backend, load_scenario("counting"), schedule, tmp_path / "run", asked)
    assert seen.outcome == outcome
    assert ("Stuck" in kinds(seen)) is (outcome == "violation")  # how far it has come is chance


def test_messages_that_are_not_released_in_the_end_are_a_leak(
    backend: LocalBackend, tmp_path: Path
) -> None:
    fault = load_scenario("gateway_answers_failed_releases").shown_by()
    right = load_scenario("counting")
    assert (
        run_once(backend, right, fault, tmp_path / "right", Asked(replay=False)).outcome == "good"
    )
    seen = run(backend, tmp_path / "run", "gateway_answers_failed_releases")
    assert (seen.outcome, kinds(seen)) == ("violation", {"Leak"})
    assert seen.judgement.guarantee == "effectively-once"


def test_versions_of_the_state_beyond_those_that_are_kept_are_a_leak(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("counting_merging")
    strict = replace(scenario, versions=0)
    for folder, judged, expected in (("a", scenario, "good"), ("b", strict, "violation")):
        seen = run_once(backend, judged, Schedule(), tmp_path / folder, Asked(replay=False))
        assert (seen.outcome, kinds(seen)) == (expected, set() if judged is scenario else {"Leak"})


def test_a_sender_that_has_come_to_its_end_is_not_blamed_for_ending_again(
    backend: LocalBackend, tmp_path: Path
) -> None:
    """A crash that finds it gone starts it again; it has nothing to do then."""
    crash = "{crash: {node: sender, before: batch=1/source.plan}}"
    seen = run(backend, tmp_path / "run", "counting", crash)
    assert seen.outcome in ("good", "not-injected")  # it may not have ended yet
    assert (kinds(seen), seen.note) == (set(), "")


def test_a_sender_that_has_lost_its_notes_with_its_disk_is_not_blamed(
    backend: LocalBackend, tmp_path: Path
) -> None:
    cut = "{power-cut: {node: sender, after: batch=1/source.commit, keep: nothing}}"
    seen = run(backend, tmp_path / "run", "counting", cut)
    assert kinds(seen) == set()


@pytest.mark.parametrize("errno", ["ENOSPC", "SHORT"])
def test_a_sender_that_is_told_that_a_note_failed_makes_it_again(
    backend: LocalBackend, tmp_path: Path, errno: str
) -> None:
    after = "sender.send/amounts/end"
    fault = f"{{storage: {{errno: {errno}, node: sender, after: {after}, call: 1}}}}"
    seen = run(backend, tmp_path / "run", "counting", fault)
    assert (seen.outcome, seen.not_fired) == ("good", ())


def test_a_sender_that_cannot_note_how_it_ended_gives_up_and_is_started_again(
    backend: LocalBackend, tmp_path: Path
) -> None:
    """Status 1, that of a traceback, would mean that the gateway has lost messages."""
    fault = "{storage: {errno: EIO, node: sender, after: sender.forget/amounts/end, call: 1}}"
    seen = run(backend, tmp_path / "run", "counting", fault)
    assert (seen.outcome, seen.not_fired) == ("good", ())
    assert "sender ended with status 3 and was started again: a sender whose disk" in seen.note
