"""A fault fires when the others have come as far as they had in an earlier run, and no further."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bettong.harness.conductor import order as order_module
from bettong.harness.conductor.order import FiringOrder, OrderKeeper
from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import Point
from bettong.lineage.trace import TraceEvent

AT = Point("ack", "before", 2)
ORDER = FiringOrder(
    AT,
    "gateway",
    {"driver": ("plan", "after", 1), "receiver": None},
    {"driver": ("plan", "before", 1), "receiver": None},
    frozenset({("ack", "before", 1), ("ack", "after", 1)}),
)


def event(node: str, step: str, phase: str = "before") -> TraceEvent:
    return TraceEvent(step, phase, node)  # type: ignore[arg-type]


class Watched(threading.Condition):
    """Says when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        self.waits.set()
        return super().wait_for(predicate, timeout)


class Run:
    """Takes events in as a run's control does, and notes their order."""

    def __init__(self, order: FiringOrder | None = ORDER) -> None:
        self.changed = Watched()
        self.counts = Counter[str]()
        self.keeper = OrderKeeper(order, self.counts, self.changed, lambda: False)
        self.taken: list[str] = []
        self.gone_on: list[str] = []

    def take(self, event: TraceEvent) -> None:
        with self.changed:
            self.keeper.wait(event)
            self.counts[event.step] += event.phase == "before"
            slow = self.keeper.came(event)
            self.taken.append(f"{event.node} {event.phase} {event.step}")
            self.changed.notify_all()
        if slow:
            self.keeper.hold()
            self.gone_on.append(event.node)

    def waiting(self, event: TraceEvent) -> threading.Thread:
        """Somebody who has come to an event and waits."""
        self.changed.waits.clear()
        thread = threading.Thread(target=self.take, args=(event,))
        thread.start()
        assert self.changed.waits.wait(60)
        return thread


def test_how_far_a_run_had_come_is_read_from_its_trace() -> None:
    crash = Crash("gateway", AT)
    events = [
        event("gateway", "node.start/gateway", "after"),
        event("gateway", "ack"),
        event("driver", "plan"),
        event("gateway", "ack", "after"),
        event("driver", "plan", "after"),
        event("gateway", "ack"),
        event("gateway", f"fault/{crash.id}", "after"),
        event("driver", "plan"),
        event("receiver", "commit"),
    ]
    assert FiringOrder.of(crash, events) == ORDER
    assert FiringOrder.of(crash, events[:6]) is None


def test_a_node_is_held_back_by_one_event() -> None:
    held = ORDER.held_back("driver")
    assert held is not None
    assert held.last == {"driver": ("plan", "before", 1), "receiver": None}
    assert ORDER.held_back("receiver") is None
    assert ORDER.held_back("gateway") is None


def test_it_waits_for_those_behind_and_holds_those_ahead_until_it_has_fired() -> None:
    run = Run()
    run.take(event("gateway", "ack"))
    run.take(event("gateway", "ack", "after"))
    fires = run.waiting(event("gateway", "ack"))
    ahead = run.waiting(event("receiver", "commit"))
    run.take(event("driver", "plan"))
    run.take(event("driver", "plan", "after"))
    fires.join(60)
    assert run.taken[-1] == "gateway before ack"
    run.keeper.fired([Point("ack")])  # another one's moment
    assert ahead.is_alive()
    run.keeper.fired([AT])
    ahead.join(60)
    assert run.taken[-1] == "receiver before commit"
    run.take(event("driver", "plan"))


def test_a_slow_node_goes_on_from_its_last_moment_only_when_it_has_fired() -> None:
    slowed = ORDER.slowed("driver")
    assert slowed is not None
    assert ORDER.slowed("receiver") is None
    assert ORDER.slowed("gateway") is None
    run = Run(slowed)
    run.take(event("driver", "plan"))
    slow = run.waiting(event("driver", "plan", "after"))
    for phase in ("before", "after"):
        run.take(event("gateway", "ack", phase))
    run.take(event("gateway", "ack"))
    assert run.taken[-1] == "gateway before ack"
    assert run.gone_on == []
    run.keeper.fired([AT])
    slow.join(60)
    assert run.gone_on == ["driver"]
    run.take(event("driver", "plan"))


def test_of_its_own_node_each_thread_comes_as_far_and_no_further() -> None:
    run = Run(replace(ORDER, last={}, previous={}))
    run.take(event("gateway", "ack"))
    ahead = run.waiting(event("gateway", "append"))
    fires = run.waiting(event("gateway", "ack"))
    assert run.taken == ["gateway before ack"]
    run.take(event("gateway", "ack", "after"))
    fires.join(60)
    assert run.taken[-1] == "gateway before ack"
    run.keeper.fired([AT])
    ahead.join(60)
    assert run.taken[-1] == "gateway before append"


def test_who_waits_in_vain_ends_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(order_module, "_WAIT_S", 0.0)
    run = Run()
    run.take(event("receiver", "commit"))  # held, in vain
    run.take(event("gateway", "ack"))
    run.take(event("gateway", "ack"))
    assert len(run.taken) == 3


def test_without_an_order_nobody_waits() -> None:
    run = Run(None)
    for step in ("ack", "ack", "commit"):
        run.take(event("receiver", step))
    run.keeper.fired([AT])
    assert len(run.taken) == 3
