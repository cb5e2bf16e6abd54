"""Word count through the interpreter and through batches without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from batch_run import Simulation, aligned

from bettong.engine import FencedError, interpret
from bettong.engine.state.store import LocalStore
from bettong.scenarios.applications.word_count import WordTotal, app

LINES = [b"They know they found it.", b"It is it, isn't it?", b"", b"\xff They", b"they"] * 7


def test_the_interpreter_counts_words() -> None:
    outputs = interpret(app, {"lines": LINES[:1]}).outputs
    assert [(o.id, o.key, o.data) for o in outputs] == [
        ("lines/0.0", "they", b"they 1"),
        ("lines/0.1", "know", b"know 1"),
        ("lines/0.2", "they", b"they 2"),
        ("lines/0.3", "found", b"found 1"),
        ("lines/0.4", "it", b"it 1"),
    ]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("partitions", [1, 4])
def test_batches_give_what_the_interpreter_gives(
    tmp_path: Path, size: int, partitions: int
) -> None:
    simulation = Simulation(app, LocalStore(tmp_path), {"lines": LINES}, partitions)
    manifest = simulation.run(aligned(simulation.streams, size))
    expected = interpret(app, {"lines": LINES})
    rows = simulation.sinks["totals"].rows
    assert sorted(rows) == sorted((o.id, o.key, o.data) for o in expected.outputs)
    for key in expected.state["WordTotal"]:
        of_key = [r.id for r in rows if r.key == key]
        assert of_key == [o.id for o in expected.outputs if o.key == key]
    assert (
        simulation.entities(manifest, "WordTotal", list(expected.state["WordTotal"]))
        == (expected.state["WordTotal"])
    )
    assert manifest.offsets == {"lines": len(LINES)}


def test_a_batch_done_again_changes_nothing(tmp_path: Path) -> None:
    simulation = Simulation(app, LocalStore(tmp_path), {"lines": LINES})
    ends = aligned(simulation.streams, 10)
    simulation.run(ends)
    before = list(simulation.sinks["totals"].rows)
    again = simulation.start()
    manifest = simulation.batch(again, len(ends) - 1, ends[-2], ends[-1])
    assert simulation.sinks["totals"].rows == before
    assert simulation.entities(manifest, "WordTotal", ["they"]) == {"they": WordTotal(28)}


def test_a_replaced_driver_publishes_and_commits_nothing(tmp_path: Path) -> None:
    simulation = Simulation(app, LocalStore(tmp_path), {"lines": LINES})
    old = simulation.start()
    new = simulation.start()
    with pytest.raises(FencedError):
        simulation.batch(old, 0, {}, {"lines": 5})
    simulation.batch(new, 0, {}, {"lines": 5})
    assert [r.id for r in simulation.sinks["totals"].rows if r.key == "they"] == [
        "lines/0.0",
        "lines/0.2",
        "lines/3.0",
        "lines/4.0",
    ]
