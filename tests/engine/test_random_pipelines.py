"""The batch functions and the interpreter agree, whatever the application, its input, the batch
boundaries, the numbers of partitions and the crashes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from batch_run import CrashingProtocol, Simulation, crashes, in_order
from hypothesis import event, given, settings
from hypothesis import strategies as st

from bettong.engine import (
    Application,
    UserFunctionError,
    application,
    interpret,
    key_extractor,
    sink,
    source,
)
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.harness.strategies.pipelines import (
    Seen,
    fragile,
    number,
    numbers,
    pipelines,
    rarely,
    remainder,
    running,
    text,
    twice,
    upto,
)


@st.composite
def inputs(
    draw: st.DrawFn, app: Application
) -> tuple[dict[str, list[bytes]], list[dict[str, int]]]:
    """Streams, and how far each batch reads each of them."""
    streams = {n.name: draw(st.lists(numbers(), max_size=12)) for n in app.sources}
    cuts = draw(st.lists(st.integers(1, 13), max_size=4, unique=True).map(sorted))
    if draw(st.booleans()):
        ends = [{s: min(c, len(m)) for s, m in streams.items()} for c in cuts]
    else:
        ends, at = [], dict.fromkeys(streams, 0)
        for _ in cuts:
            at = {s: draw(st.integers(at[s], len(streams[s]))) for s in streams}
            ends.append(at)
    return streams, [*ends, {s: len(m) for s, m in streams.items()}]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_batches_and_interpreter_agree(data: st.DataObject) -> None:
    app = data.draw(pipelines())
    event(f"levels {app.levels}")
    event(app.on_error)
    streams, boundaries = data.draw(inputs(app))
    expected = interpret(app, streams, boundaries)
    simulation = Simulation(
        app,
        LocalStore(Path("/log"), SimulatedDisk()),
        streams,
        data.draw(st.integers(1, 3)),
        data.draw(st.integers(1, 3)),
        CrashingProtocol,
        packs=data.draw(st.booleans()),
    )
    crash = data.draw(crashes(len(boundaries)))
    manifest = simulation.run_with_crash(boundaries, crash, data.draw(st.integers(1, 3)))
    for node in app.sinks:
        rows = [tuple(r) for r in simulation.sinks[node.name].rows]
        wanted = [(o.id, o.key, o.data) for o in expected.outputs if o.sink == node.name]
        assert in_order(node, rows) == in_order(node, wanted)
        assert len({i for i, _, _ in rows}) == len(rows), "ids are unique at a sink"
    for name, entities in expected.state.items():
        assert simulation.entities(manifest, name, list(entities)) == entities
        assert simulation.stored(manifest, name) == set(entities)


def check_batch(app: Application, streams: Mapping[str, list[bytes]]) -> None:
    """One batch of all messages gives every sink what the interpreter does."""
    expected = interpret(app, streams)
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), streams)
    simulation.run([{stream: len(messages) for stream, messages in streams.items()}])
    for node in app.sinks:
        wanted = [(o.id, o.key, o.data) for o in expected.outputs if o.sink == node.name]
        assert sorted(simulation.sinks[node.name].rows) == sorted(wanted)


def test_a_message_that_meets_a_state_twice_meets_it_step_by_step() -> None:
    """All of a message's parts go through the first step before any goes through the second."""
    keyed = source("in0", number).to(upto).key_by(remainder)
    first, second = keyed.to(running), keyed.to(rarely)
    app = application(
        "twice", first.to_sink(sink("out0", text)), second.to_sink(sink("out1", text))
    )
    streams = {"in0": [b"3", b"7", b"2", b"15"]}
    check_batch(app, streams)


def test_steps_of_different_depth_share_a_state() -> None:
    """What a shallow step gives has the path of its own depth, not of the deepest one's."""
    lines = source("in0", number)
    many = lines.to(upto)
    shallow = lines.key_by(remainder).to(twice)
    deep = many.key_by(remainder, name="again").to(twice, name="later")
    app = application(
        "depths",
        shallow.merge(many).to_sink(sink("out0", text)),
        deep.to_sink(sink("out1", text)),
    )
    streams = {"in0": [b"3", b"7"]}
    check_batch(app, streams)


@pytest.mark.parametrize("policy", ["fail", "skip", "dead letter"])
def test_what_becomes_of_messages_on_which_a_function_fails(policy: str) -> None:
    on_error: Any = sink("dead", text) if policy == "dead letter" else policy
    totals = source("in0", number).key_by(remainder).to(fragile).to_sink(sink("out0", text))
    app = application("failing", totals, on_error=on_error)
    streams = {"in0": [b"2", b"no number", b"1", b"3"]}
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), streams)
    if policy == "fail":
        with pytest.raises(UserFunctionError, match="step in0 failed on message in0/1: ValueError"):
            simulation.run([{"in0": 4}])
        with pytest.raises(
            UserFunctionError, match=r"step fragile failed on message in0/0 with key"
        ):
            interpret(app, {"in0": streams["in0"][2:3] * 3})
        return
    manifest = simulation.run([{"in0": 2}, {"in0": 4}])
    assert simulation.entities(manifest, "Seen", ["all"]) == {"all": Seen(2, [2, 3])}
    assert manifest.failed == {"in0": 1, "fragile": 1}
    if policy == "dead letter":
        parse, take = sorted(simulation.sinks["dead"].rows)
        assert parse.id == "in0/1.0"
        assert b"step='in0', message='in0/1'" in parse.data
        assert b"value=b'no number'" in parse.data
        assert b"ArithmeticError: cannot take 1" in take.data


@key_extractor
def odd(value: int) -> Any:
    if value == 1:
        raise ArithmeticError("one has no key")
    return "all" if value % 2 else 0.5


def test_messages_without_a_key_fail_once_whatever_is_wrong_with_them() -> None:
    """One key that is none has the whole batch looked at again, key by key."""
    totals = source("in0", number).key_by(odd).to(fragile).to_sink(sink("out0", text))
    app = application("keyless", totals, on_error=sink("dead", text))
    check_batch(app, {"in0": [b"1", b"2", b"3"]})
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), {"in0": [b"1", b"2"]})
    assert simulation.run([{"in0": 2}]).failed == {"odd": 2}
