"""What one run has done so far, and the faults that are put in force at its steps.

Counts the occurrences of each step, records the trace in the order in which events arrive, and
before a step is answered carries out what the schedule places there. Faults reach the world
through an :class:`~bettong.harness.faults.actuator.Actuator`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bettong.engine.steps import UNREACHED
from bettong.harness.conductor.admission import DRAIN_TIMEOUT, StepAdmission
from bettong.harness.conductor.event_log import EventLog, OpenStep
from bettong.harness.conductor.fault_status import Injected, Planned, PlannedFaults
from bettong.harness.conductor.injector import GO, Injection
from bettong.harness.conductor.order import FiringOrder, OrderKeeper
from bettong.harness.faults.actuator import Actuator
from bettong.harness.faults.fault import Fault, Go
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.trace import TraceEvent


class RunControl:
    """The control of one run.

    Attributes:
        run: the run's name; processes that name another are refused.
        schedule: the faults that are planned.
        failure: what went wrong while a fault was being carried out or a step answered, if anything
            did.

    Args:
        normalise: names steps as they are named in every run.
        answer: gives what a step that asks is told, by its id and occurrence; None for others.
        on_step: is given each event of the trace when it is recorded.
        order: in which one of the faults is to fire.
    """

    def __init__(
        self,
        run: str,
        actuator: Actuator,
        schedule: Schedule = Schedule(),  # noqa: B008 - immutable
        trace: Path | None = None,
        normalise: Callable[[TraceEvent], TraceEvent] | None = None,
        answer: Callable[[str, int], Any] = lambda *_: None,
        on_step: Callable[[TraceEvent], None] = lambda event: None,
        order: FiringOrder | None = None,
    ) -> None:
        self.run = run
        self.schedule = schedule
        self.failure: Exception | None = None
        self._normalise = normalise
        self._answer = answer
        self._on_step = on_step
        self._planned = PlannedFaults(schedule)
        self._changed = threading.Condition()
        self._left = threading.Event()
        self._began: dict[str, tuple[int, OpenStep]] = {}
        self._book = EventLog(trace)
        self._gate = StepAdmission(
            run, self._book, self._changed, lambda: self._gate.ended or self.failure is not None
        )
        self._order = OrderKeeper(
            order,
            self._book.counts,
            self._changed,
            lambda: self._gate.ended or self.failure is not None,
        )
        self._injection = Injection(self._planned, actuator, self._gate, self.note, self.fail)

    # --- what others read

    @property
    def events(self) -> list[TraceEvent]:
        """The trace so far, in the order of arrival."""
        return self._book.events

    @property
    def times(self) -> list[float]:
        """When each event came, in seconds of a monotonic clock."""
        return self._book.times

    @property
    def evidence(self) -> dict[str, str]:
        """For each fault that fired, by id, the proof that it did."""
        return self._planned.evidence

    @property
    def not_fired(self) -> tuple[str, ...]:
        """Ids of the planned faults that were not carried out from beginning to end."""
        return self._planned.not_fired

    @property
    def injected(self) -> list[Injected]:
        """The planned faults that have been in force, or are."""
        with self._changed:
            return self._planned.injected

    @property
    def unended(self) -> tuple[str, ...]:
        """Ids of the faults in force that are to end at a moment that has not come."""
        with self._changed:
            return self._planned.unended

    @property
    def repeats(self) -> int:
        """How many steps were taken since one was taken for the first time."""
        return self._book.repeats

    @property
    def most_taken(self) -> int:
        """How often that step was begun which was begun the most."""
        return self._book.most_taken

    @property
    def idle_seconds(self) -> float:
        """Seconds since anything happened."""
        return time.monotonic() - self._book.latest

    @property
    def all_back(self) -> bool:
        """Whether no node is down that is to come back."""
        with self._changed:
            return self._gate.all_back

    def progress_summary(self) -> str:
        """Where the run stands: the steps that are open, and the last one reported."""
        with self._changed:
            return self._book.progress_summary()

    def waiting(self) -> dict[str, list[str]]:
        """The steps of each node that have begun and not ended, with whom they ask."""
        with self._changed:
            return self._book.waiting()

    def at_work(self) -> frozenset[str]:
        """The nodes that are within steps and ask nobody in any of them; but for one of which a
        thread is held until nobody else goes on."""
        with self._changed:
            return self._book.at_work() - self._planned.held

    def last_steps(self) -> dict[str, str]:
        """What each node has told last."""
        with self._changed:
            return self._book.last_steps()

    def occurrences(self, step: str) -> int:
        """How often a step has been begun."""
        return self._book.counts[step]

    def wait(self, timeout: float) -> None:
        """Wait until a process has left, as each does that ends, or a fault could not be carried
        out; or so many seconds. That somebody is at a step wakes nobody: with every run it comes
        some hundred times, from threads that all wait for one another."""
        if self._left.wait(timeout):
            self._left.clear()

    def note(self, event: TraceEvent) -> None:
        """Record something that the harness itself has done."""
        with self._changed:
            self._record(event)
            self._book.flush()

    def has_died(self, node: str, incarnation: int) -> None:
        """This incarnation of a node, and older ones, must not take another step."""
        self._gate.mark_dead(node, incarnation)

    def wake(self, drained: bool = True) -> bool:
        """Let those go on that stand still until everybody else has done their work, or, if that
        is not ``drained``, until nobody goes on without them; whether there were any."""
        woken = self._injection.wake(drained)
        if drained:  # a thread that has come this late is not to be killed within its step
            self._let_pass((p.fault for p in woken if p.fault.holds_thread), 1)
        return bool(woken)

    def end_unended(self, seen: str, done: bool) -> None:
        """End those faults whose end is a moment that does not come any more, as has been seen;
        they are carried out if that is as good as their own end, which is ``done``."""
        self._injection.end_unended(seen, done)

    def fail(self, error: Exception) -> None:
        """The run is worth nothing: the harness itself could not go on with it."""
        with self._changed:
            if not self._gate.ended and self.failure is None:
                self.failure = error
            self._changed.notify_all()
        self._left.set()

    def has_spoken(self, node: str, incarnation: int) -> bool:
        """Whether this incarnation of a node, or a later one, has taken a step."""
        with self._changed:
            return self._book.spoken.get(node, 0) >= incarnation

    # --- what the conductor calls

    def notify(self, connection_id: int, event: TraceEvent) -> Go | None:
        """A process is at a step; the answer, or None when the process is dead by now.

        Raises RunRefusedError when the process must not go on.
        """
        if self._normalise is not None:
            event = self._normalise(event)
        if event.step.startswith(UNREACHED):
            with self._changed:
                return Go(answer=self._gate.returns(event))
        if event.step.startswith(self._planned.reports):
            with self._changed:
                self._gate.refuse_the_dead(event)
            self._stand_still(event, self._injection.reported(connection_id, event))
            return None if self._gate.is_dead(event.node, event.incarnation) else GO
        with self._changed:
            self._order.wait(event)
            self._gate.refuse_the_dead(event)
            if event.phase == "before":
                self._gate.admit(connection_id, event)
                crossed = self._planned.crossed(event)
                taken = self._book.enter(connection_id, event)
            else:
                crossed = []
                taken = self._book.leave(connection_id, event)
            self._record(event)
            slow = self._order.came(event)
            ends, starts = self._planned.due(event, taken.occurrence)
            ends = [*ends, *crossed]
            self._began |= {planned.fault.id: (connection_id, taken) for planned in starts}
        self._injection.lapse(connection_id, event)
        ended_held = event.phase != "before" and taken.held
        go: Go | None = GO
        if ends or starts or ended_held:
            go = self._injection.act(connection_id, taken, event, ends, starts)
            with self._changed:
                left = event.phase == "before" and not self._book.is_open(connection_id, taken)
            if left:
                self._injection.release(taken.held)
            self._order.fired([planned.fault.points[0] for planned in starts])
            self._let_pass(planned.fault for planned in ends if planned.fault.steps_first)
            standing = [planned for planned in starts if planned.fault.holds_step]
            self._stand_still(event, standing)
            if standing and self._gate.is_dead(event.node, event.incarnation):
                return None
        if slow:
            self._order.hold()
            if self._gate.is_dead(event.node, event.incarnation):
                return None
        if go is None or event.phase != "before":
            return go
        answer = self._answer(event.step, taken.occurrence + go.later)
        return go if answer is None else replace(go, answer=answer)

    def _stand_still(self, event: TraceEvent, held: Sequence[Planned]) -> None:
        """The thread waits until these have ended, or its process has."""
        gate = self._gate
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    gate.ended
                    or gate.is_dead(event.node, event.incarnation)
                    or not any(planned.in_force for planned in held)
                )
            )

    def _let_pass(self, ended: Iterable[Fault], least: int = 0) -> None:
        """Wait until the steps are over that are to come first."""
        with self._changed:
            held = [
                (*self._began[f.id], max(f.steps_first, least))
                for f in ended
                if f.id in self._began
            ]
            self._changed.wait_for(
                lambda: self._gate.ended or all(self._book.are_over(*first) for first in held),
                DRAIN_TIMEOUT,
            )

    def gone(self, connection_id: int) -> None:
        """A connection has closed: what its steps held in force is healed."""
        with self._changed:
            left = self._book.gone(connection_id)
            self._changed.notify_all()
        self._left.set()
        self._injection.lapse(connection_id)
        held = [planned for taken in left for planned in taken.held]
        if held:
            self._injection.release(held)

    def close(self) -> None:
        """End the run: nobody of it goes on, what is in force is healed."""
        with self._changed:
            self._gate.ended = True
            self._changed.notify_all()
        self._injection.end()
        with self._changed:
            self._book.close()

    def _record(self, event: TraceEvent) -> None:
        self._book.record(event)
        self._on_step(event)
        self._changed.notify_all()
