"""When waits end, as the conductor answers it, and how drivers take the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from bettong.engine import steps
from bettong.engine.batch.planning import NEVER, Planner
from bettong.engine.batching import Batching
from bettong.engine.sources.base import Extent
from bettong.engine.state.planned import all_noted
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import Instrumentation, step
from bettong.harness.cluster.cluster import Cluster
from bettong.harness.conductor.moments import Moments
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.trace import MessageRange


class Whole:
    """A stream all of whose messages are there."""

    def __init__(self, count: int) -> None:
        self.count = count

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(self.count, True)

    def read(self, planned: MessageRange, step: str, causes: Sequence[str]) -> Sequence[bytes]:
        raise AssertionError("planning reads nothing")

    def plan(self, planned: MessageRange, step_id: str) -> None:
        with step(step_id, carries=[planned]):
            pass

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        pass


def test_a_driver_that_asks_again_is_told_the_next_moment() -> None:
    moments = Moments(({"a": 1}, {"a": 3}))
    assert moments.answer("batch=0/source.wait", 1) == {"a": 1}
    assert moments.answer("batch=0/source.wait", 2) == {"a": 3}
    assert moments.answer("batch=1/source.wait", 1) == {"a": 3}
    assert moments.answer("batch=1/source.wait", 2) == NEVER
    assert moments.answer("batch=1/source.plan", 1) is None
    assert Moments(()).answer("batch=0/source.wait", 1) is None


@pytest.fixture
def watched() -> Iterable[RunControl]:
    """A run whose conductor ends waits of stream ``a`` at 2 and at 5 messages, ``b`` silent."""
    with Conductor() as conductor:
        control = RunControl("r", Cluster(None, {}), answer=Moments(({"a": 2}, {"a": 5})).answer)  # type: ignore[arg-type]
        conductor.begin(control)
        steps.install(Instrumentation("r", "driver", 1, conductor.address))
        yield control
        steps.install(Instrumentation())
        conductor.end(control)


def test_a_late_moment_is_the_next_one(tmp_path: Path) -> None:
    late = Schedule.parse("faults: [{late: {at: batch=0/source.wait}}]")
    with Conductor() as conductor:
        moments = Moments(({"a": 2}, {"a": 5}))
        control = RunControl("r", Cluster(None, {}), late, answer=moments.answer)  # type: ignore[arg-type]
        conductor.begin(control)
        steps.install(Instrumentation("r", "driver", 1, conductor.address))
        try:
            planner = Planner({"a": Whole(12)}, LocalStore(tmp_path), Batching(8), 0.0)
            assert planner.plan(0, {"a": 0}) == {"a": 5}
        finally:
            steps.install(Instrumentation())
            conductor.end(control)
        assert control.not_fired == ()
        assert control.evidence == {
            "late(batch=0/source.wait)": "the driver was told the next moment"
        }


def test_batches_end_where_the_conductor_says(watched: RunControl, tmp_path: Path) -> None:
    sources = {"a": Whole(12), "b": Whole(1)}
    ends, found = {"a": 0, "b": 0}, []
    planner = Planner(sources, LocalStore(tmp_path), Batching(4), 0.0)
    for batch in range(6):
        planned = planner.plan(batch, ends)
        if planned is None:
            break
        ends = planned
        found.append((ends["a"], ends["b"]))
    # by time at 2 and at 5, then by number: a full share, or what is left of a stream that ended
    assert found == [(2, 0), (5, 0), (9, 1), (12, 1)]
    assert [dict(n.ends)["a"] for n in all_noted(LocalStore(tmp_path))] == [2, 5, 9, 12]
    taken = [e.step for e in watched.events if e.phase == "before"]
    assert taken[:3] == ["batch=0/source.wait", "batch=0/source.plan/a", "batch=0/source.note"]
    assert taken.count("batch=4/source.wait") == 0, "a wait begins with a batch's first message"
