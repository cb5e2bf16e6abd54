"""The state that a run leaves: read from the disk, and held against the interpreter's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from bettong.engine import application, interpret, sink, source, state_computation, state_entity
from bettong.engine.codecs.state import BytesCodec
from bettong.engine.keys import canonical, hash_bytes
from bettong.engine.state.entities import save
from bettong.engine.state.manifest import Manifest, write_manifest
from bettong.engine.state.store import LocalStore
from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.left_state import LeftState, check_left_state, left_state
from bettong.harness.runs.run import run_once
from bettong.scenarios.applications.running_sum import Sum, amount, app, line, name
from bettong.scenarios.applications.visits import app as visits

SENT = {"amounts": [b"ann,5", b"bob,10", b"ann,15"]}


def leave(folder: Path, sums: dict[Any, int], failed: dict[str, int] | None = None) -> LeftState:
    """A state log as a run leaves it, read back."""
    layout = Layout(folder)
    store = LocalStore(layout.checkpoint / "state")
    (state,) = app.states
    keys = list(map(canonical, sums))
    entry = save(
        state,
        store,
        "Sum/1.arrow",
        keys,
        list(map(hash_bytes, keys)),
        [Sum(v) for v in sums.values()],
    )
    write_manifest(store, Manifest(app.name, 0, 1, {"amounts": 3}, (entry,), {}, failed or {}))
    return left_state(app, layout)


def found(left: LeftState) -> list[tuple[str | None, str | None]]:
    anomalies = check_left_state(app, interpret(app, SENT), left)
    assert {a.kind for a in anomalies} <= {"StateDivergence"}
    return [(a.key, a.note) for a in anomalies]


def test_the_right_state_is_no_anomaly(tmp_path: Path) -> None:
    assert found(leave(tmp_path, {"ann": 20, "bob": 10})) == []


def test_each_wrong_entity_is_named(tmp_path: Path) -> None:
    left = leave(tmp_path, {"ann": 5, b"ann": 20})
    assert found(left) == [
        ("'ann'", "differs in total"),
        ("'bob'", "missing"),
        ("b'ann'", "unexpected"),
    ]
    (first, *_) = check_left_state(app, interpret(app, SENT), left)
    assert (first.expected, first.seen) == ({"total": 20}, {"total": 5})


def test_failures_that_are_counted_wrongly_are_named(tmp_path: Path) -> None:
    left = leave(tmp_path, {"ann": 20, "bob": 10}, {"amounts": 2})
    assert found(left) == [(None, "step amounts has failed on 0 messages, 2 are counted")]
    interpreted = interpret(visits, {"visits": [b"1,ann", b"not a visit"]})
    assert interpreted.failed == {"read": 1}


def test_a_state_that_cannot_be_read_is_an_anomaly(tmp_path: Path) -> None:
    leave(tmp_path, {"ann": 20, "bob": 10})
    file = Layout(tmp_path).checkpoint / "state" / "Sum" / "1.arrow"
    file.write_bytes(file.read_bytes()[:-1])
    left = left_state(app, Layout(tmp_path))
    assert "is damaged" in left.unreadable
    assert found(left) == [(None, "cannot be read")]


def test_a_run_that_has_done_no_batch_has_left_nothing(tmp_path: Path) -> None:
    left = left_state(app, Layout(tmp_path))
    assert check_left_state(app, interpret(app, {"amounts": []}), left) == ()
    assert found(left) == [("'ann'", "missing"), ("'bob'", "missing")]


class Unequal:
    """An entity without equality of its own."""

    def __init__(self) -> None:
        self.total = 0


@pytest.mark.parametrize("cls", [Unequal, Sum])
def test_what_has_no_equality_is_not_called_different(cls: type) -> None:
    codec = BytesCodec(pickle.dumps, lambda data, _: pickle.loads(data))

    @state_computation(state=state_entity(cls, name="held", codec=codec))
    def add(message: tuple[str, int], held: Any) -> tuple[str, int]:
        held.total += message[1]
        return message[0], held.total

    summed = source("amounts", amount).key_by(name).to(add).to_sink(sink("sums", line))
    held = application("held", summed)
    right = interpret(held, SENT)
    other = interpret(held, {"amounts": [b"ann,1", b"bob,2"]})
    fewer = interpret(held, {"amounts": [b"ann,1"]})
    different = check_left_state(held, right, LeftState(other.state))
    assert [a.key for a in different] == ([] if cls is Unequal else ["'ann'", "'bob'"])
    missing = check_left_state(held, right, LeftState(fewer.state))
    assert [a.key for a in missing if a.note == "missing"] == ["'bob'"]


@pytest.mark.parametrize(
    ("mutant", "note"),
    [
        ("last_state_left_out", "differs in total"),
        ("failures_counted_twice", "step read has failed on 1 messages, 2 are counted"),
    ],
)
def test_outputs_that_are_right_do_not_hide_a_wrong_state(
    backend: LocalBackend, tmp_path: Path, mutant: str, note: str
) -> None:
    scenario = load_scenario(mutant)
    clean = run_once(backend, scenario, Schedule(), tmp_path / "clean", Asked(replay=False))
    assert clean.outcome == "good"
    seen = run_once(backend, scenario, scenario.shown_by(), tmp_path / "run", Asked(replay=False))
    assert (seen.outcome, seen.judgement.guarantee) == ("violation", "none")
    assert [(a.kind, a.note) for a in seen.anomalies] == [("StateDivergence", note)]


def test_a_loss_is_said_once_though_the_state_lacks_it_too(
    backend: LocalBackend, tmp_path: Path
) -> None:
    scenario = load_scenario("gateway_acks_early")
    seen = run_once(backend, scenario, scenario.shown_by(), tmp_path / "run", Asked(replay=False))
    assert "StateDivergence" not in {a.kind for a in seen.anomalies}
    assert seen.judgement.guarantee == "at-most-once"
