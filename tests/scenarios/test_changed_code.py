"""An application whose code is another one after each restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.state.files import open_rows
from bettong.engine.state.query import version
from bettong.engine.state.store import LocalStore
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.scenarios.applications.rescaled_sum import STATE
from bettong.scenarios.corners import CHANGED, RENAMED, RESCALED_TOTALS


@pytest.mark.parametrize(
    ("faults", "written"),
    [
        ("", {1}),
        ("crash: {node: driver, before: batch=1/state.manifest}", {1}),
        ("crash: {node: driver, before: batch=0/sink.commit}", {1}),
        (
            "crash: {node: driver, before: batch=0/sink.commit}}, "
            "{crash: {node: driver, before: batch=1/state.manifest}",
            {2},
        ),
    ],
    ids=["no fault", "a crash", "a crash of the sink", "a crash in the middle of the change"],
)
def test_it_goes_on_with_the_state_that_is_there(
    backend: LocalBackend, tmp_path: Path, faults: str, written: set[int]
) -> None:
    schedule = Schedule.parse(f"faults: [{{{faults}}}]") if faults else Schedule()
    seen = run_once(backend, CHANGED, schedule, tmp_path / "run", Asked(replay=False))
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    store = LocalStore(Layout(tmp_path / "run").checkpoint / "state")
    found = {open_rows(store, entry).version for entry in version(store).files}
    assert found == written, "versions of the state's codec"


@pytest.mark.parametrize(
    ("at", "written"),
    [("batch=0/state.manifest", {2}), ("batch=1/state.manifest", {1, 2})],
    ids=["a crash before there is state to go on with", "a crash in the middle of the change"],
)
def test_what_is_renamed_goes_on_with_its_state(
    backend: LocalBackend, tmp_path: Path, at: str, written: set[int]
) -> None:
    schedule = Schedule.parse(f"faults: [{{crash: {{node: driver, after: {at}}}}}]")
    seen = run_once(backend, RENAMED, schedule, tmp_path / "run", Asked(replay=False))
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    store = LocalStore(Layout(tmp_path / "run").checkpoint / "state")
    assert {open_rows(store, entry).version for entry in version(store).files} == written


def test_a_tick_meets_what_both_versions_have_written(
    backend: LocalBackend, tmp_path: Path
) -> None:
    schedule = Schedule.parse("faults: [{crash: {node: driver, before: batch=1/sink.commit}}]")
    seen = run_once(backend, RESCALED_TOTALS, schedule, tmp_path / "run", Asked(replay=False))
    assert (seen.outcome, seen.not_fired) == ("good", ()), seen.note
    store = LocalStore(Layout(tmp_path / "run").checkpoint / "state")
    sums = [entry for entry in version(store).files if entry.state == STATE]
    assert {open_rows(store, entry).version for entry in sums} == {1, 2}
    assert [value for _, value in seen.outputs] == ["told 5", "told 10", "told 40", "told 10"]
