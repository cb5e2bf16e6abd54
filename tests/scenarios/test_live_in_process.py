"""Live scenarios without Spark: batches that close by time, at moments that the conductor says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.engine.batch.planning import Ends, Planner
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.batching import BY_NUMBER
from bettong.engine.state import housekeeping
from bettong.engine.state.housekeeping import Housekeeper
from bettong.engine.state.manifest import Manifest
from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.trace_lineage import lineage_of
from bettong.lineage.trace import TraceEvent
from bettong.scenarios.beside import MergingFiles
from bettong.scenarios.live import (
    BURST,
    FEW_VERSIONS,
    SCENARIOS,
    SILENT,
    STALL,
    TRICKLE,
    of_one_key,
)

EXTENDED = Scenario(
    "live_extended",
    "two streams, and from the next start on a third one and a sink more",
    "bettong.scenarios.applications.extended_sum:app",
    lambda: {**of_one_key(2, 1), "gifts": [b"all,5"]},
    batch=2,
    moments=({"amounts": 1},),
    frame=1,
    partitions=1,
    outputs="files",
    earlier=("bettong.scenarios.applications.extended_sum:before",),
)


def sizes(events: Sequence[TraceEvent], stream: str) -> list[int]:
    """How many messages of a stream each batch takes, of those that take any."""
    return [
        carried.stop - carried.start
        for event in events
        if event.phase == "after" and event.step.endswith(("/sink.commit", "/sink.commit/sums"))
        for carried in event.carries
        if carried.stream == stream
    ]


@pytest.mark.parametrize("scenario", [*SCENARIOS, EXTENDED], ids=lambda s: s.name)
def test_a_clean_run_is_good_and_its_trace_names_every_cause(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario
) -> None:
    seen = run_once(backend, scenario, Schedule(), tmp_path / "run")
    assert (seen.outcome, seen.replay_changed, seen.note) == ("good", False, "")
    assert seen.outputs
    assert lineage_of(seen.events).reading.unread == []


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (TRICKLE, {"amounts": [2, 1, 2, 2]}),
        (BURST, {"amounts": [1, 4, 4, 1, 1, 1]}),
        (SILENT, {"amounts": [1, 2, 2], "corrections": []}),
        (STALL, {"amounts": [1, 2, 2, 1], "corrections": [1, 1, 1]}),
        # The second version does the last batch of the first one again.
        (EXTENDED, {"amounts": [1, 1, 1], "corrections": [1, 1], "gifts": [1]}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_batches_are_those_of_the_moments_every_time(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario, expected: dict[str, list[int]]
) -> None:
    seen = run_once(backend, scenario, Schedule(), tmp_path / "run", Asked(replay=False))
    assert {stream: sizes(seen.events, stream) for stream in expected} == expected


def test_batches_that_are_full_are_noted_too(backend: LocalBackend, tmp_path: Path) -> None:
    """A driver that was taken for dead may have found less, and note that later."""
    seen = run_once(backend, BURST, Schedule(), tmp_path / "run", Asked(replay=False))
    noted = {e.step for e in seen.events if e.step.endswith("/source.note")}
    assert noted == {f"batch={n}/source.note" for n in range(6)}


@pytest.mark.parametrize(
    ("scenario", "faults"),
    [
        (TRICKLE, "crash: {node: driver, after: batch=1/source.wait}"),
        (TRICKLE, "crash: {node: driver, before: batch=1/state.manifest}"),
        (TRICKLE, "storage: {before: batch=1/source.note, errno: ENOSPC}"),
        (STALL, "crash: {node: driver, after: batch=1/source.note}"),
        (STALL, "late: {at: batch=1/source.wait}"),
        (STALL, "crash: {node: sender-corrections, after: sender.send/corrections/0}"),
        (SILENT, "crash: {node: driver, after: batch=0/sink.commit}"),
        (EXTENDED, "crash: {node: driver, after: batch=1/source.note}"),
        (EXTENDED, "pause: {node: driver, from: batch=1/source.note, replace: true}"),
        (
            EXTENDED,
            "pause: {node: driver, from: batch=1/source.note, replace: true, "
            "until: after batch=1/source.wait#2}",
        ),
        (BURST, "crash: {node: driver, before: batch=1/state.manifest}"),
        (BURST, "pause: {node: driver, from: batch=0/source.note, replace: true}"),
        (BURST, "pause: {node: driver, from: batch=1/source.note, replace: true}"),
    ],
)
def test_it_withstands_faults_while_a_batch_closes(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario, faults: str
) -> None:
    schedule = Schedule.parse(f"faults: [{{{faults}}}]")
    seen = run_once(backend, scenario, schedule, tmp_path / "run")
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", [TRICKLE, SILENT, BURST, STALL], ids=lambda s: s.name)
def test_no_crash_loss_or_moment_in_a_batch_breaks_it(
    backend: LocalBackend, tmp_path: Path, scenario: Scenario
) -> None:
    bounds = SearchBounds(crashes=1, losses=1, moments=1, batches=1, together=1)
    result = run_scenario(scenario, bounds, backend=backend, out=tmp_path)
    assert result.verdict == "valid", result.reason


class _ByNumber(Planner):
    def close(self, batch: int, ends: Ends) -> dict[str, int] | None:
        self.batching = replace(self.batching, wait_s=BY_NUMBER)
        return super().close(batch, ends)


class ByNumberAlone(BatchProtocol):
    """Waits for ever for the messages that a batch still lacks."""

    planner = _ByNumber


def test_who_closes_no_batch_by_time_is_stuck_though_all_comes_out_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    mistaken = replace(TRICKLE, classes={"protocol": f"{Path(__file__).stem}:ByNumberAlone"})
    with LocalBackend(runner="in-process") as backend:
        seen = run_once(backend, mistaken, Schedule(), tmp_path / "run")
    assert [(a.kind, a.seen) for a in seen.anomalies] == [("Stuck", "no batch was closed by time")]


class _KeepsNotes(Housekeeper):
    def _clean(self, manifest: Manifest) -> None:
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(housekeeping, "remove_before", lambda store, batch: None)
            super()._clean(manifest)


class KeepsNotes(MergingFiles):
    """Never removes what was noted of a batch."""

    housekeeper = _KeepsNotes


def test_notes_of_batches_that_nobody_does_again_are_not_kept_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    mistaken = replace(FEW_VERSIONS, classes={"protocol": f"{Path(__file__).stem}:KeepsNotes"})
    with LocalBackend(runner="in-process") as backend:
        seen = run_once(backend, mistaken, Schedule(), tmp_path / "run")
    assert [(a.kind, a.seen) for a in seen.anomalies] == [("Leak", "notes of batch 0 too")]
