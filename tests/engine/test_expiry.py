"""Entities that are forgotten after a silence of their key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from batch_run import Simulation, aligned
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import (
    application,
    decoder,
    encoder,
    expiring,
    interpret,
    key_extractor,
    sink,
    source,
    state_computation,
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


@decoder
def number(data: bytes) -> float:
    return float(data)


@key_extractor
def parity(at: float) -> int:
    return int(at) % 2


@encoder
def text(value: str) -> bytes:
    return value.encode()


@given(st.lists(st.integers(0, 60).map(lambda n: b"%d" % n), max_size=30), st.integers(1, 7))
def test_expiry_does_not_depend_on_batches(times: list[bytes], size: int) -> None:
    step = expiring(visit, itself, 5, farewell)
    visits = source("times", number).key_by(parity).to(step).to_sink(sink("out", text))
    app = application("visits", visits)
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), {"times": times})
    simulation.run([*aligned(simulation.streams, size), {"times": len(times)}])
    wanted = [(o.id, o.key, o.data) for o in interpret(app, {"times": times}).outputs]
    assert sorted(simulation.sinks["out"].rows) == sorted(wanted)
