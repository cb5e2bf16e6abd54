"""Entities that are forgotten after a silence of their key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from batch_run import CrashingProtocol, Simulation, aligned, crashes
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.engine import (
    Tick,
    application,
    decoder,
    encoder,
    expiring,
    interpret,
    key_extractor,
    sink,
    source,
    state_computation,
    state_entity,
    watermark,
)
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.lineage.errors import UsageError


@dataclass
class Visits:
    count: int = 0


@state_computation(state=Visits)
def visit(at: float, visits: Visits) -> str:
    visits.count += 1
    return f"visit {visits.count}"


def farewell(visits: Visits) -> list[str]:
    return [f"gone after {visits.count}"]


def itself(at: float) -> float:
    return at


def test_an_entity_is_forgotten_after_a_silence() -> None:
    step = expiring(visit, itself, 10, farewell)
    entity = step.state.cls()
    given_ = [step.call(at, entity) for at in (0, 10, 5, 20.5, 21)]
    assert given_ == [
        ["visit 1"],
        ["visit 2"],
        ["visit 3"],
        ["gone after 3", "visit 1"],
        ["visit 2"],
    ]
    with pytest.raises(UsageError, match="step visit: after must be more than 0"):
        expiring(visit, itself, 0)


def test_a_tick_forgets_who_is_silent() -> None:
    step = expiring(visit, itself, 10, farewell)
    entity = step.state.cls()
    step.call(5.0, entity)
    assert step.call(Tick(15.0), entity) == []
    assert not step.state.forget(entity)
    assert step.call(Tick(15.5), entity) == ["gone after 1"]
    assert step.state.forget(entity)


@decoder
def number(data: bytes) -> float:
    return float(data)


@key_extractor
def parity(at: float) -> int:
    return int(at) % 2


@encoder
def text(value: str) -> bytes:
    return value.encode()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60).map(lambda n: b"%d" % n), min_size=1, max_size=30),
    st.integers(1, 7),
    st.integers(1, 5),
    st.data(),
)
def test_expiry_depends_neither_on_batches_nor_on_crashes(
    times: list[bytes], size: int, every: int, data: st.DataObject
) -> None:
    """Silent entities are gone from the state log as well, whenever the driver dies and however
    many partitions there are then."""
    lines = source("times", number)
    keyed = lines.key_by(parity).merge(watermark(lines, itself, every))
    step = expiring(visit, itself, 5, farewell)
    app = application("visits", keyed.to(step).to_sink(sink("out", text)))
    streams = {"times": times}
    store = LocalStore(Path("/log"), SimulatedDisk())
    simulation = Simulation(app, store, streams, protocol_class=CrashingProtocol)
    boundaries = aligned(streams, size)
    crash = data.draw(crashes(len(boundaries)))
    manifest = simulation.run_with_crash(boundaries, crash, data.draw(st.integers(1, 4)))
    expected = interpret(app, streams)
    wanted = [(o.id, o.key, o.data) for o in expected.outputs]
    assert sorted(simulation.sinks["out"].rows) == sorted(wanted)
    assert simulation.stored(manifest, "Visits") == set(expected.state["Visits"])


def test_what_the_state_says_itself_of_forgetting_holds_too() -> None:
    kept_once = state_entity(Visits, forget=lambda visits: visits.count > 1)
    step = expiring(state_computation(state=kept_once)(visit.call), itself, 10)
    assert step.state.forget is not None
    entity = step.state.cls()
    step.call(0, entity)
    assert not step.state.forget(entity)
    step.call(1, entity)
    assert step.state.forget(entity)
