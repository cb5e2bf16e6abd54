"""Scenarios of what otherwise only long runs, large messages or rare events come to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bettong.engine import interpret
from bettong.engine.keys import canonical, hash_bytes
from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.checkers.oracle import by_number, expected_outputs
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import bounds_of
from bettong.scenarios import corners, full, merging
from bettong.scenarios.benchmarks.mutants.executed import Executed
from bettong.scenarios.benchmarks.mutants.overlay import source_of
from bettong.scenarios.corners import ACCOUNTS, READINGS, STATEMENTS, VISITS
from bettong.scenarios.merging import COLLIDING, FORGETTING, FORGETTING_APART

SCENARIOS = (*corners.SCENARIOS, *merging.SCENARIOS, *full.SCENARIOS)

CORNERS = {
    "counting_rolling": [
        ("engine/storage/log.py", "self._begin(segment.number + 1)"),
        ("engine/receiver/ledger.py", "self._log.drop_before(self._log.segments[-1])"),
    ],
    "merged_rolling": [("engine/storage/log.py", "self._begin(segment.number + 1)")],
    "counting_on_credit": [("engine/ingest/gateway.py", "sender.send(Credit(stream.limit))")],
    "counting_merging": [
        ("engine/state/compaction.py", "return write_rows(store, name, state.name, rows,"),
        ("engine/state/manifest.py", "store.remove(_name(batch, epoch))"),
        ("engine/state/housekeeping.py", 'self._store.remove(f"{folder}/{name}")'),
    ],
    "counting_merging_beside": [
        ("engine/state/compaction.py", "return write_rows(store, name, state.name, rows,"),
        ("engine/state/manifest.py", "store.remove(_name(batch, epoch))"),
    ],
    "counting_merging_apart": [
        ("engine/state/compaction.py", "return write_rows(store, name, state.name, rows,"),
        ("engine/state/housekeeping.py", 'self._store.remove(f"{folder}/{name}")'),
    ],
    "forgetting_merging": [
        ("engine/state/compaction.py", "return write_rows(store, name, state.name, rows,"),
        ("engine/expiry.py", "given = list(on_expiry(kept.value))"),
        ("engine/windows.py", "yield from self._fire(entity)"),
    ],
    "forgetting_merging_apart": [
        ("engine/state/compaction.py", "return write_rows(store, name, state.name, rows,"),
        ("engine/expiry.py", "given = list(on_expiry(kept.value))"),
    ],
    "switches_on_arrays": [("engine/state/columns.py", "f.name: column.field(i).to_numpy(")],
    "counting_ahead": [("engine/ingest/gateway.py", "causes.append(following.cause)")],
    "counting_collided": [
        ("engine/state/files.py", "rows[place] = self._after_collision("),
        ("engine/state/compaction.py", "return np.array([newest[row] for row in sorted(newest)]"),
    ],
    "statements": [("engine/batch/visits.py", "self._entities[code] = before")],
    "accounts": [("engine/batch/stateful.py", "entities[code] = before")],
    "counting_on_arrays": [("engine/batch/stateful.py", "return from_columns(function.name,")],
    "readings": [
        ("engine/windows.py", "value, counted.value = counted.value, accumulator()"),
        ("engine/windows.py", "self.update(message, entity.windows[min(waiting)].value)"),
        ("engine/windows.py", "if over:\n                yield self._fired(start, window)"),
        ("engine/windows.py", "combine(joined.value, other.value)"),
        ("engine/codecs/state.py", "return [self._decode(b, version) for b in column"),
        ("engine/keys.py", 'return b"i%d" % key'),
        ("engine/receiver/rows.py", 'return f\'"base64":'),
    ],
    "visits": [
        ("engine/windows.py", "joined = near[0] if near else one(at, at)"),
        ("engine/expiry.py", "kept.last, kept.value = -math.inf, make()"),
        ("engine/ticks.py", "return None if clock.seen % every else Tick(clock.latest)"),
        ("engine/batch/flow.py", "dead = items.take(np.array(places, np.int64))"),
    ],
    "counting_between_folders": [
        ("engine/sources/directory.py", 'store.create(f"{len(files):09d}.json", sealed(entry))'),
        ("engine/sources/lines.py", "found.append(at + size + 1)"),
        ("engine/sinks/arrow.py", "self._store.create(_note(batch), sealed(files))"),
    ],
    "counting_shared_folder": [
        ("engine/sources/directory.py", "return self._extent()  # another driver takes files too"),
    ],
    "counting_too_early": [
        ("engine/batch/planning.py", "if end < full and not ended:\n            return None"),
    ],
    "large_messages": [
        ("engine/ingest/gateway.py", "if size >= self.reply_bytes:\n                break"),
        ("engine/receiver/client.py", "recorded = hand_over(connection, part, number, name)"),
    ],
}


def test_two_keys_of_a_scenario_have_the_same_hash() -> None:
    one, other = (canonical(key.decode()) for key in COLLIDING)
    assert one != other
    assert hash_bytes(one) == hash_bytes(other)


def test_no_frame_can_be_taken_for_another() -> None:
    """A gateway that takes one twice has as many messages as it should, in the end."""
    shared = [scenario for scenario in SCENARIOS if scenario.input is corners.amounts]
    assert any(scenario.frame > 1 for scenario in shared)
    for scenario in shared:
        (messages,) = scenario.messages().values()
        assert len(set(messages)) == len(messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERS)
def test_a_scenario_comes_to_its_corner(name: str, tmp_path: Path) -> None:
    recording = "bettong.scenarios.benchmarks.mutants.recording"
    recorded = subprocess.run(
        [sys.executable, "-m", recording, name, "3", str(tmp_path)],
        capture_output=True,
        check=True,
    ).stdout
    found = msgspec.json.decode(recorded, type=Executed)
    for path, text in CORNERS[name]:
        source = source_of(path)
        assert text in source, f"{path} has changed: name the statement of the corner again"
        last = text.rpartition("\n")[2]
        line = source[: source.index(text) + len(text) - len(last)].count("\n") + 1
        assert line in found.clean[path], f"{name} does not run {path}:{line}"


def test_the_right_ones_hold_without_faults(tmp_path: Path) -> None:
    with LocalBackend(runner="in-process") as backend:
        for scenario in SCENARIOS:
            result = run_scenario(scenario, backend=backend, out=tmp_path / scenario.name)
            assert result.verdict == "valid", (scenario.name, result.reason)


@pytest.mark.parametrize(
    "scenario",
    [VISITS, READINGS, ACCOUNTS, STATEMENTS, FORGETTING, FORGETTING_APART],
    ids=lambda scenario: str(scenario.name),
)
def test_the_interpreter_gives_what_was_worked_out_by_hand(scenario: Scenario) -> None:
    messages = scenario.messages()
    ends = by_number(messages, scenario.batch)
    application = scenario.load_application()
    found = expected_outputs(application, interpret(application, messages, ends))
    assert {record.id: record.value for record in found} == scenario.rows


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_the_right_ones_hold_under_every_single_fault(scenario: Scenario, tmp_path: Path) -> None:
    with LocalBackend(runner="in-process") as backend, LocalBackend(runner="in-process") as other:
        result = run_scenario(
            scenario,
            bounds_of("quick"),
            backend=backend,
            beside=[other],
            out=tmp_path,
        )
    assert result.verdict == "valid", result.reason
    assert result.coverage.complete
