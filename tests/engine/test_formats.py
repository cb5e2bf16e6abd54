"""Typed messages in JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from batch_run import Simulation
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import application, decoder, json_decoder, json_encoder, sink, source
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.harness.strategies.pipelines import text
from bettong.lineage.errors import UsageError


@dataclass
class Place:
    name: str
    height: float | None = None


@dataclass
class Trip:
    days: int
    places: list[Place] = field(default_factory=list)


@decoder
def raw(data: bytes) -> bytes:
    return data


def trips() -> st.SearchStrategy[Trip]:
    heights = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    places = st.builds(Place, st.text(), heights)
    return st.builds(Trip, st.integers(-(1 << 63), (1 << 63) - 1), st.lists(places, max_size=3))


@given(trips())
def test_values_survive_and_their_bytes_read_as_before(trip: Trip) -> None:
    data = json_encoder()(trip)
    again = json_decoder(Trip)(data)
    assert again == trip
    assert json_encoder()(again) == data


def test_what_is_not_of_the_type_is_a_dead_letter() -> None:
    good = b'{"days": 2, "places": [{"name": "Albany", "unknown": 1}]}'
    bad = [b'{"days": "2"}', b'{"places": []}', b"[]", b"{", b"\xff", b'{"days": 1, "places": [1]}']
    app = application(
        "trips",
        source("trips", json_decoder(Trip)).to_sink(sink("out", json_encoder())),
        on_error=sink("dead", text),
    )
    streams = {"trips": [good, *bad]}
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), streams)
    simulation.run([{"trips": len(streams["trips"])}])
    (row,) = simulation.sinks["out"].rows
    assert row.data == b'{"days":2,"places":[{"name":"Albany","height":null}]}'
    assert [r.id for r in simulation.sinks["dead"].rows] == [f"trips/{n}.0" for n in range(1, 7)]


def test_an_encoder_that_fails_on_all_of_a_batch_leaves_it_empty() -> None:
    app = application(
        "raw",
        source("trips", raw).to_sink(sink("out", json_encoder())),
        on_error=sink("dead", json_encoder()),
    )
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), {"trips": [b"x"] * 3})
    manifest = simulation.run([{"trips": 3}])
    assert manifest.failed == {"out": 3, "dead": 3}
    assert not simulation.sinks["out"].rows and not simulation.sinks["dead"].rows


def test_a_type_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read from JSON"):
        json_decoder(Place | Trip)
