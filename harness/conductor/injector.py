"""Puts the faults of a run in force at their moments, and ends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bettong.harness.conductor.admission import StepAdmission
from bettong.harness.conductor.event_log import OpenStep
from bettong.harness.conductor.fault_status import Planned, PlannedFaults
from bettong.harness.conductor.run_actuator import AdmittingActuator
from bettong.harness.faults.actuator import Actuator
from bettong.harness.faults.fault import Begun, Ended, Go
from bettong.harness.faults.registry import to_entry
from bettong.harness.faults.step_ids import FAULT
from bettong.lineage.trace import TraceEvent

GO = Go()
_DRAINED = "all others had done their work before its moment came"


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """A fault that the process itself carries out, as it was told at a moment.

    Attributes:
        at: that moment.
    """

    planned: Planned
    at: TraceEvent

    def outlives(self, event: TraceEvent) -> bool:
        """Whether it is in force still when its thread has come to another moment: what was
        ordered for a step lasts until that ends, through steps within it."""
        within = self.at.phase == "before"
        return within and (event.phase == "before" or event.step != self.at.step)


class Injection:
    """The planned faults of one run, and what carries them out.

    Args:
        note: writes an event into the trace.
        fail: called when a fault cannot be carried out.
    """

    def __init__(
        self,
        planned: PlannedFaults,
        actuator: Actuator,
        gate: StepAdmission,
        note: Callable[[TraceEvent], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._planned = planned
        self._actuator = actuator
        self._gate = gate
        self._note = note
        self._fail = fail
        self._acting = threading.RLock()
        self._orders: dict[int, list[_Order]] = {}  # of each connection

    def act(
        self,
        connection_id: int,
        taken: OpenStep,
        event: TraceEvent,
        ends: list[Planned],
        starts: list[Planned],
    ) -> Go | None:
        """Do what is due at a moment; the answer to the step, None when its process is dead."""
        with self._acting:
            try:
                if event.phase != "before":
                    self._step_ended(taken, event)
                for planned in ends:
                    self._end(planned)
                if self._gate.is_dead(event.node, event.incarnation):
                    return None  # killed while it waited here: what starts now, nobody would end
                run = AdmittingActuator(self._actuator, self._gate, taken.event)
                begun = [(p, self._begin(connection_id, taken, p, run)) for p in starts]
                self._restart_later(run)
                if self._gate.is_dead(event.node, event.incarnation):
                    return None  # and what it would have been told, it is not
                return self._answer(connection_id, event, begun)
            except Exception as e:
                self._fail(e)
                raise

    def lapse(self, connection_id: int, event: TraceEvent | None = None) -> None:
        """A process comes to its next moment, or (None) to no other one: the orders that end there
        are carried out by now, or never are."""
        if connection_id not in self._orders:
            return
        with self._acting:
            orders = self._orders.pop(connection_id)
            lasting = [order for order in orders if event is not None and order.outlives(event)]
            for order in orders:
                order.planned.in_force = order in lasting
            if lasting:
                self._orders[connection_id] = lasting

    def release(self, held: list[Planned]) -> None:
        """End what was in force within steps of a process that is gone."""
        with self._acting:
            for planned in held:
                self._end(planned, "the process ended within the step")

    def wake(self, drained: bool) -> list[Planned]:
        """Let those go on that stand still until everybody else has done their work, or, if that
        is not ``drained``, until nobody goes on without them."""
        with self._acting:
            waiting = [
                p
                for p in self._planned
                if (p.in_force and p.fault.until_idle if drained else p.ends_when_still)
            ]
            for planned in waiting:
                self._end(planned, _DRAINED if len(planned.fault.points) > 1 else "")
            return waiting

    def end_unended(self, seen: str, done: bool) -> None:
        """End those whose end is a moment that does not come any more, as has been seen; they are
        carried out if that is as good as their own end, which is ``done``."""
        with self._acting:
            for planned in self._planned:
                if planned.in_force and len(planned.fault.points) > 1:
                    self._end(planned, seen, done=done)

    def end(self) -> None:
        """End whatever is still in force: the run is over."""
        with self._acting:
            for planned in self._planned:
                if planned.in_force and not planned.done:
                    # Most had an end, which never came; what a link was to lose within a step
                    # that has not ended, it has lost or not.
                    lasts = planned.fault.lasts(planned.met)
                    done = lasts or planned.fault.link_held is not None
                    self._end(planned, "the run ended", done=done)

    def reported(self, connection_id: int, event: TraceEvent) -> list[Planned]:
        """A process says what a fault in force has made of it; the faults that hold its thread."""
        held = []
        with self._acting:
            others = [
                order.planned
                for other, orders in self._orders.items()
                if other != connection_id
                for order in orders
            ]
            for planned in self._planned:
                if not planned.in_force or any(planned is other for other in others):
                    continue
                run = AdmittingActuator(self._actuator, self._gate, event)
                try:
                    begun = planned.fault.reported(event, run)
                    if begun is not None:
                        self._in_force(planned, begun)
                        held += [planned] if planned.fault.holds_thread else []
                except Exception as e:
                    self._fail(e)
                    raise
                self._restart_later(run)
        return held

    def _begin(
        self, connection_id: int, taken: OpenStep, planned: Planned, run: AdmittingActuator
    ) -> Begun | None:
        """Put a fault in force, unless it is in the answer to the step."""
        fault = planned.fault
        planned.node = taken.event.node
        if fault.link_held is not None:
            self._gate.close_link_pair(connection_id, fault.link_held)
        if fault.link_held is not None or fault.ends_patience:
            taken.held.append(planned)
        planned.met = int(fault.crosses(taken.event.link))
        begun = fault.begin(run)
        if begun is not None and begun.answer is None:
            self._in_force(planned, begun)
        return begun

    def _answer(
        self,
        connection_id: int,
        event: TraceEvent,
        begun: Iterable[tuple[Planned, Begun | None]],
    ) -> Go:
        """What the step is told. It has one answer: a second fault that would be in it is not put
        in force."""
        for planned, how in begun:
            if how is not None and how.answer is not None:
                self._in_force(planned, how)
                if not how.done:
                    self._orders.setdefault(connection_id, []).append(_Order(planned, event))
                return how.answer
        return GO

    def _in_force(self, planned: Planned, begun: Begun) -> None:
        planned.in_force, planned.done, planned.since = True, begun.done, time.monotonic()
        if begun.evidence:
            planned.evidence.append(begun.evidence)
            self._note_fault(planned, begun.evidence)

    def _step_ended(self, taken: OpenStep, event: TraceEvent) -> None:
        """The step within which faults were in force has come to its end."""
        failed = event.phase == "failed"
        for planned in taken.held:
            took = (time.monotonic() - planned.since) * 1000
            error = event.detail.get("error", "no word why")
            seen = f"step failed: {error}" if failed else f"step took {took:.0f} ms"
            self._end(planned, seen, step_failed=failed)
        taken.held.clear()

    def _end(
        self, planned: Planned, seen: str = "", done: bool = True, step_failed: bool = False
    ) -> None:
        if not planned.in_force:
            return
        planned.in_force = False
        fault, link = planned.fault, planned.fault.link_held
        if link is not None and not step_failed:
            self._gate.open_link_pair(link)  # what is lost may be another step's: a reply
        run = AdmittingActuator(self._actuator, self._gate)
        has_begun = not fault.holds_thread or bool(planned.evidence)
        ended = fault.end(run, planned.met, step_failed) if has_begun else Ended(fired=False)
        if link is not None:
            self._gate.open_link_pair(link)
        planned.done = done and ended.fired
        planned.evidence += [text for text in (seen, *ended.evidence) if text]
        self._note_fault(planned, "; ".join(planned.evidence[1:]) or "healed")

    def _restart_later(self, run: AdmittingActuator) -> None:
        """Start nodes again that are to come back, while the run goes on."""
        for node in run.to_restart:
            threading.Thread(target=self._restart, args=(node,), daemon=True).start()

    def _restart(self, node: str) -> None:
        try:
            with self._acting:
                for planned in self._planned:
                    if planned.fault.heals_for(node):
                        self._end(planned, f"the {node} was started again")
            self._actuator.restart(node)
        except Exception as e:
            self._fail(e)
        finally:
            self._gate.is_back(node)

    def _note_fault(self, planned: Planned, evidence: str) -> None:
        lasts = planned.in_force and not planned.done
        self._note(
            TraceEvent(
                f"{FAULT}{planned.fault.id}",
                "before" if lasts else "after",
                planned.fault.noted_at,
                detail={"evidence": evidence, "fault": to_entry(planned.fault)},
            )
        )
