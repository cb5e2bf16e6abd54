"""Messages that are for every key; that they do what they should is shown by random pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from batch_run import Simulation
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import (
    GraphError,
    application,
    sink,
    source,
    state_computation,
    state_entity,
)
from bettong.engine.ids import visits
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.harness.strategies.pipelines import Seen, divisible, number, remainder, text
from bettong.scenarios.applications import running_sum_arrays

HASHES = st.integers(0, (1 << 64) - 1) | st.integers(0, 3)


@given(st.lists(st.tuples(HASHES, st.binary()), unique=True))
def test_ids_distinguish_keys_of_one_hash(keys: list[tuple[int, bytes]]) -> None:
    found = visits(keys)
    assert [key for _, key in found] == [key for _, key in sorted(keys)]
    paths = [path for path, _ in found]
    assert paths == sorted(set(paths))
    assert all(0 <= part < 1 << 31 for path in paths for part in path)


@state_computation(state=Seen)
def up(value: int, seen: Seen) -> int | None:
    seen.total += value
    return None if value % 5 else seen.total


def test_keys_that_have_an_entity_are_met_and_written_when_they_change() -> None:
    lines = source("in0", number)
    every = lines.filter(divisible).every_key()
    keyed = lines.filter(lambda n: n % 5 != 0).key_by(remainder)
    app = application("all", keyed.merge(every).to(up).to_sink(sink("out0", text)))
    streams = {"in0": [b"5", b"6", b"7", b"0", b"10"]}
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), streams, fan_in=9)
    protocol = simulation.start()
    written = []
    for n in range(5):
        manifest = simulation.batch(protocol, n, {"in0": n}, {"in0": n + 1})
        written.append(sum(f.rows for f in manifest.files) - sum(written))
    assert written == [0, 1, 1, 0, 2]
    rows = simulation.sinks["out0"].rows
    assert sorted((r.id.split(".")[0], r.key, r.data) for r in rows) == [
        ("in0/3", "r0", b"6"),
        ("in0/3", "r1", b"7"),
        ("in0/4", "r0", b"16"),
        ("in0/4", "r1", b"17"),
    ]


def test_what_cannot_be_for_every_key_is_refused() -> None:
    lines = source("in0", number)
    with pytest.raises(GraphError, match="messages for every key come to sink out0"):
        application("all", lines.every_key().to_sink(sink("out0", text)))
    once = state_entity(Seen, forget=lambda seen: seen.total == 0)
    also = state_computation(state=once)(lambda value, seen: None)
    keyed = lines.key_by(remainder)
    with pytest.raises(GraphError, match="share state Seen but do not forget the same"):
        application("all", keyed.to(up).done(), keyed.to(also).done())
    amounts = source("amounts", running_sum_arrays.amounts)
    with pytest.raises(GraphError, match="step add is over arrays and cannot take"):
        application("sums", amounts.every_key().to(running_sum_arrays.add).done())
