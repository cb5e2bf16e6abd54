"""Message by message gives what the interpreter says, and goes on after a crash."""

from __future__ import annotations

import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.engine import Application, UserFunctionError, interpret
from bettong.engine.errors import FencedError
from bettong.engine.events.engine import EventEngine
from bettong.engine.interpreter import Output
from bettong.engine.keys import Key
from bettong.engine.state.query import entities_of, version
from bettong.engine.state.store import LocalStore
from bettong.harness.strategies.pipelines import numbers, pipelines
from bettong.lineage.errors import BettongError, UsageError
from bettong.scenarios.applications import running_sum, running_sum_arrays, word_count

Pushes = list[tuple[str, bytes]]


@st.composite
def runs(draw: st.DrawFn) -> tuple[Application, dict[str, list[bytes]]]:
    app = draw(pipelines())
    return app, {n.name: draw(st.lists(numbers(), max_size=10)) for n in app.sources}


def in_order(app: Application, streams: dict[str, list[bytes]]) -> Pushes:
    """Message n of every stream before message n+1 of any."""
    names = [s.name for s in app.sources]
    return [
        (name, data)
        for row in zip_longest(*(streams[name] for name in names))
        for name, data in zip(names, row, strict=True)
        if data is not None
    ]


def entities(engine: EventEngine) -> dict[str, dict[Key, Any]]:
    return engine._compiled.entities


@settings(max_examples=150, deadline=None)
@given(runs())
def test_it_agrees_with_the_interpreter(run: tuple[Application, dict[str, list[bytes]]]) -> None:
    app, streams = run
    expected = interpret(app, streams)
    outputs: list[Output] = []
    engine = EventEngine(app, lambda *output: outputs.append(Output(*output)))
    for stream, message in in_order(app, streams):
        engine.push(stream, message)
    assert sorted(outputs, key=repr) == sorted(expected.outputs, key=repr)
    for sink in app.sinks:
        of_sink = [o for o in outputs if o.sink == sink.name]
        assert of_sink == [o for o in expected.outputs if o.sink == sink.name]
    assert entities(engine) == expected.state


@settings(max_examples=50, deadline=None)
@given(runs(), st.data())
def test_it_goes_on_where_its_state_was_written(
    run: tuple[Application, dict[str, list[bytes]]], data: st.DataObject
) -> None:
    app, streams = run
    pushes = in_order(app, streams)
    expected = interpret(app, streams)
    every = data.draw(st.integers(1, 5))
    crash = data.draw(st.integers(0, len(pushes)))
    seen: dict[tuple[str, str], set[Output]] = {}

    def deliver(*output: Any) -> None:
        seen.setdefault(output[:2], set()).add(Output(*output))

    with tempfile.TemporaryDirectory() as name:
        first = EventEngine(app, deliver, Path(name), every)
        for stream, message in pushes[:crash]:
            first.push(stream, message)
        again = EventEngine(app, deliver, Path(name), every)
        done = crash - crash % every
        for stream in streams:
            assert again.next(stream) == sum(s == stream for s, _ in pushes[:done])
        for stream, message in pushes[done:]:
            again.push(stream, message)
        assert entities(again) == expected.state
        again.close()
        first.close()
    assert all(len(same) == 1 for same in seen.values()), "an id has the same bytes whenever given"
    given_once = [o for same in seen.values() for o in same]
    assert sorted(given_once, key=repr) == sorted(expected.outputs, key=repr)


def test_the_state_can_be_looked_at(tmp_path: Path) -> None:
    engine = EventEngine(word_count.app, lambda *_: None, tmp_path, every=2)
    engine.push_all("lines", [b"they know", b"they found", b"they"])
    store = LocalStore(tmp_path / "state")
    assert version(store).offsets == {"lines": 2}
    engine.close()
    assert entities_of(store, version(store), "they") == {"WordTotal": {"count": 3}}


def test_after_a_failure_it_takes_no_more() -> None:
    engine = EventEngine(running_sum.app, lambda *_: None)
    engine.push("amounts", b"a,1")
    with pytest.raises(UserFunctionError, match="step amounts failed on message amounts/1: Value"):
        engine.push("amounts", b"no number")
    with pytest.raises(BettongError, match="running_sum has failed"):
        engine.push("amounts", b"a,1")


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes many messages at a time"):
        EventEngine(running_sum_arrays.app, lambda *_: None)
    with pytest.raises(UsageError, match="every must be at least 1, got 0"):
        EventEngine(running_sum.app, lambda *_: None, tmp_path, every=0)


def test_of_two_engines_on_a_checkpoint_the_older_one_writes_nothing(tmp_path: Path) -> None:
    outputs: list[bytes] = []
    first = EventEngine(running_sum.app, lambda *_: None, tmp_path, every=2)
    second = EventEngine(running_sum.app, lambda *_: None, tmp_path, every=2)
    second.push_all("amounts", [b"a,1", b"a,1"])
    first.push("amounts", b"a,5")
    with pytest.raises(FencedError, match=r"epoch 1 of .* has been replaced by epoch 2"):
        first.push("amounts", b"a,5")
    with pytest.raises(BettongError, match="begin again from its checkpoint"):
        first.push("amounts", b"a,5")
    first.close()
    second.close()
    third = EventEngine(
        running_sum.app, lambda *output: outputs.append(output[3]), tmp_path, every=2
    )
    assert third.next("amounts") == 2
    third.push("amounts", b"a,1")
    third.close()
    assert outputs == [b"a 3"]
