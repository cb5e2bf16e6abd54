"""What a replay goes by: the level and the code that its counterexample was found with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bettong.harness.api import load_scenario, replay, run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Stall, Storage
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.seals import unseal

CHANGED = "the engine or the application has changed since this was found"


def test_a_replay_asks_for_the_level_it_was_found_under_and_tells_of_other_code(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("sink_drops_torn_row")
    found = run_scenario(
        scenario,
        scenario.shown_by(),
        backend=backend,
        out=tmp_path / "found",
        expected="at-least-once",
    )
    assert (found.verdict, found.expected) == ("invalid", "at-least-once")
    file = tmp_path / "found" / "counterexample-1.json"
    same = replay(file, backend=backend, out=tmp_path / "same")
    assert (same.verdict, same.expected) == ("invalid", "at-least-once")
    assert CHANGED not in same.assumptions

    value = json.loads(file.read_text())
    value["options"] |= {"expect": "none", "code": "that of another day"}
    unseal(file)
    file.write_text(json.dumps(value))
    other = replay(file, backend=backend, out=tmp_path / "other")
    assert (other.verdict, other.expected) == ("valid", "none")
    assert CHANGED in other.assumptions


@pytest.mark.parametrize(
    ("mutant", "fault", "anomaly"),
    [
        (  # a sync that has failed harms nobody as long as the machine has power
            "gateway_swallows_failed_syncs",
            Storage(Point("gateway.release/amounts/5"), "EIO", 2, "gateway"),
            "Leak",
        ),
        (  # nor does a wrong note before somebody starts from it
            "gateway_releases_backwards",
            Stall(
                "gateway",
                Point("gateway.release/amounts/2"),
                0,
                Point("gateway.release/amounts/5", "after"),
            ),
            "Stuck",
        ),
    ],
)
def test_a_given_schedule_is_judged_by_what_is_made_of_its_disks_as_in_a_search(
    backend: LocalBackend, tmp_path: Path, mutant: str, fault: Fault, anomaly: str
) -> None:
    found = run_scenario(
        load_scenario(mutant), Schedule((fault,)), backend=backend, out=tmp_path / "found"
    )
    assert (found.verdict, found.reason) == ("invalid", f"{anomaly} under {fault.id}")
    file = tmp_path / "found" / "counterexample-1.json"
    assert replay(file, backend=backend, out=tmp_path / "again").verdict == "invalid"
