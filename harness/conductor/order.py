"""Has a fault fire in the order of an earlier run: when every node has come as far as it had by
then, and none of them has gone on; of the node that comes to it all its threads.

What follows a fault can rest on how far others were when it fired, which is chance. A search that
has seen a moment come after a fault, and wants a second fault there, needs that chance once more.
Events do not tell all of it: what a node had begun may have been done by then, or not.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import FAULT, NODE_START
from bettong.harness.processes.patience import patience
from bettong.lineage.trace import TraceEvent

_WAIT_S = 5.0

Moment = tuple[str, str, int]
"""A step, the phase of its event, and which time it is taken."""


@dataclass(frozen=True, slots=True)
class FiringOrder:
    """How far a run had come when a fault fired in it.

    Attributes:
        at: the moment at which the fault fires.
        node: that came to it.
        last: of each other node the last moment before; None where it had taken no step.
        previous: the one before that.
        own: all moments of that node before; None: none of them matters.
        slow: a node that does not even do what it was about to do after its last moment.
    """

    at: Point
    node: str
    last: Mapping[str, Moment | None]
    previous: Mapping[str, Moment | None] = field(default_factory=dict)
    own: frozenset[Moment] | None = None
    slow: str | None = None

    @classmethod
    def of(cls, fault: Fault, events: Iterable[TraceEvent]) -> FiringOrder | None:
        """The order of a run's trace; None where the fault has not fired in it."""
        at, counts = fault.points[0], Counter[str]()
        node, fired = "", False
        moments: dict[str, set[Moment]] = {}
        own = frozenset[Moment]()
        last: dict[str, Moment | None] = {}
        previous: dict[str, Moment | None] = {}
        for event in events:
            if event.step.startswith(FAULT):
                fired = fired or event.step == f"{FAULT}{fault.id}"
            elif not event.step.startswith(NODE_START):
                counts[event.step] += event.phase == "before"
                moment = event.step, event.phase, counts[event.step]
                if moment == (at.step, at.phase, at.occurrence):
                    node, own = event.node, frozenset(moments.get(event.node, ()))
                moments.setdefault(event.node, set()).add(moment)
                if not fired:
                    previous[event.node] = last.get(event.node)
                last[event.node] = last.get(event.node) if fired else moment
        others = {n: m for n, m in last.items() if n != node}
        before = {n: previous.get(n) for n in others}
        return cls(at, node, others, before, own) if fired else None

    def held_back(self, node: str) -> FiringOrder | None:
        """The same with a node an event less far, so that what it was about to do then it does when
        the fault has fired; None where it had done nothing."""
        if self.last.get(node) is None:
            return None
        return replace(self, last={**self.last, node: self.previous.get(node)})

    def slowed(self, node: str) -> FiringOrder | None:
        """The same with a node that has begun its last step and goes on with it only when the fault
        has fired; None where it had done nothing."""
        return replace(self, slow=node) if self.last.get(node) is not None else None


@dataclass
class OrderKeeper:
    """Keeps the nodes of a run in an order, until the fault has fired or one waits in vain.

    Args:
        order: None keeps nobody.
        counts: how often each step has been begun so far in the run.
        changed: guards both, and is notified when an event has come.
        ended: whether nobody may wait any longer.
    """

    order: FiringOrder | None
    counts: Mapping[str, int]
    changed: threading.Condition
    ended: Callable[[], bool]
    _came: set[Moment] = field(default_factory=set)
    _over: bool = False

    def wait(self, event: TraceEvent) -> None:
        """Called with the lock, before an event is taken in: returns when it is its turn."""
        if self.order is None or self._over:
            return
        begins = event.phase == "before"
        moment = event.step, event.phase, self.counts.get(event.step, 0) + begins
        if moment == (self.order.at.step, self.order.at.phase, self.order.at.occurrence):
            self._until(self._all_are_there)
        elif self._is_ahead(event.node, moment, self.order):
            self._until(lambda: False)

    def came(self, event: TraceEvent) -> bool:
        """Called with the lock: an event has been taken in; whether it is to be held."""
        if self.order is None or self._over:
            return False
        moment = event.step, event.phase, self.counts.get(event.step, 0)
        self._came.add(moment)
        return event.node == self.order.slow and moment == self.order.last[event.node]

    def hold(self) -> None:
        """Before a slow node is told to go on: returns when the fault has fired."""
        with self.changed:
            self._until(lambda: False)

    def fired(self, fault_at: Iterable[Point]) -> None:
        """Faults that begin at these moments have been put in force."""
        if self.order is not None and self.order.at in fault_at:
            with self.changed:
                self._end()

    def _until(self, reached: Callable[[], bool]) -> None:
        arrived = lambda: self._over or self.ended() or reached()  # noqa: E731
        if not self.changed.wait_for(arrived, patience(_WAIT_S)):
            self._end()

    def _end(self) -> None:
        self._over = True
        self.changed.notify_all()

    def _all_are_there(self) -> bool:
        assert self.order is not None
        own = self.order.own or ()
        return all(map(self._is_there, (*self.order.last.values(), *own)))

    def _is_ahead(self, node: str, moment: Moment, order: FiringOrder) -> bool:
        if node == order.node:
            return order.own is not None and moment not in order.own
        return node in order.last and self._is_there(order.last[node])

    def _is_there(self, moment: Moment | None) -> bool:
        return moment is None or moment in self._came
