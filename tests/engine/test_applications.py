"""Every ready-made application: the interpreter's outputs mean what they should, and batches
give the same."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from batch_run import Simulation, aligned

from bettong.engine import interpret
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.scenarios import applications
from bettong.scenarios.applications import (
    alerts,
    alphabet_votes,
    celsius,
    counting,
    follower_graph,
    market_spread,
    running_sum,
)

NAMES = sorted(m.name for m in pkgutil.iter_modules(applications.__path__))
TEXT = [b"They know they found it.", b"it is", b"they"] * 50


@pytest.mark.parametrize("name", NAMES)
def test_batches_give_what_the_interpreter_gives(name: str) -> None:
    module = importlib.import_module(f"{applications.__name__}.{name}")
    streams = module.messages(300) if hasattr(module, "messages") else {"lines": TEXT}
    expected = interpret(module.app, streams)
    assert expected.outputs or name == "market_spread"
    simulation = Simulation(module.app, LocalStore(Path("/log"), SimulatedDisk()), streams)
    manifest = simulation.run(aligned(streams, 70))
    for node in module.app.sinks:
        wanted = [(o.id, o.key, o.data) for o in expected.outputs if o.sink == node.name]
        assert sorted(simulation.sinks[node.name].rows) == sorted(wanted)
    for state, entities in expected.state.items():
        assert simulation.entities(manifest, state, list(entities)) == entities


def test_running_sums_add_up() -> None:
    outputs = interpret(running_sum.app, {"amounts": [b"a,3", b"b,1", b"a,4"]}).outputs
    assert [o.data for o in outputs] == [b"a 3", b"b 1", b"a 7"]


def test_orders_are_rejected_while_the_spread_is_wide() -> None:
    streams = {
        "nbbo": [b"S|10.00|10.01", b"S|10.00|10.09", b"S|10.00|10.01"],
        "orders": [b"1|S|buy|5|10", b"2|S|buy|5|10", b"3|S|sell|5|10"],
    }
    outputs = interpret(market_spread.app, streams).outputs
    assert [(o.id, o.data) for o in outputs] == [("orders/1", b"2|S|buy|5|10.0|10.0|10.09")]


def test_about_the_wanted_part_of_orders_is_rejected() -> None:
    streams = market_spread.messages(20_000, rejected=1 / 100)
    rejected = interpret(market_spread.app, streams).outputs
    assert 100 < len(rejected) < 400
    assert all(50 <= len(m) <= 60 for stream in streams.values() for m in stream)


def test_alerts_tell_of_large_sums() -> None:
    lines = [b"0,ann,2500", b"100,ann,2000", b"200,bob,100", b"320,ann,9000"]
    outputs = interpret(alerts.app, {"transactions": lines}).outputs
    assert [o.data for o in outputs if o.sink == "in_five"] == [b"ann moved 4500 from 0 to 300"]
    assert [o.id for o in outputs if o.sink == "large_ones"] == [
        "transactions/0",
        "transactions/1",
        "transactions/3",
    ]
    assert [o.data for o in outputs if o.sink == "reached"] == [b"ann has reached 13500"]


def test_followers_come_with_the_end() -> None:
    edges = [b"ann bob", b"cid bob", b"ann bob", b"bob ann"]
    assert not interpret(follower_graph.app, {"edges": edges}).outputs
    outputs = interpret(follower_graph.app, {"edges": [*edges, b"end"]}).outputs
    assert sorted(o.data for o in outputs) == [b"ann has 1", b"bob has 2"]


def test_the_small_ones() -> None:
    votes = [b"a" + bytes([0, 0, 1, 0]), b"a" + bytes([0, 0, 0, 1])]
    assert interpret(alphabet_votes.app, {"votes": votes}).outputs[1].data == b"a => 257"
    (boiling,) = interpret(celsius.app, {"celsius_degrees": [celsius.packed(100.0)]}).outputs
    assert celsius.degrees(boiling.data) == 212
    outputs = interpret(counting.app, {"numbers": [b"3", b"-1", b"4"]}).outputs
    assert [o.data for o in outputs if o.sink == "doubled"] == [b"6", b"8"]
    assert outputs[-1].data == b"2 numbers, 14 in all"
