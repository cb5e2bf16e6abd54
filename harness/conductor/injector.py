"""Puts the faults of a run in force at their moments, and ends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bettong.harness.conductor.admission import StepAdmission
from bettong.harness.conductor.event_log import OpenStep
from bettong.harness.conductor.fault_status import Planned, PlannedFaults
from bettong.harness.faults import kinds as f
from bettong.harness.faults.actuator import Actuator
from bettong.harness.faults.kinds import Fault
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Go:
    """The answer to a step that may go on; with ``errno`` it fails as the system would, with
    ``cut`` the power is cut before so many things have become durable."""

    errno: int | None = None
    cut: int = 0


GO = Go()
POWER_CUT = "power-cut/"


class Injection:
    """The planned faults of one run, and what carries them out.

    Args:
        note: writes an event into the trace.
        fail: told when a fault cannot be carried out.
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
                    self._heal(planned)
                answers = [self._begin(connection_id, taken, planned) for planned in starts]
                for planned in starts:
                    match planned.fault:
                        case f.Crash(node=node, restart=True):
                            self._restart_later(node)
                        case f.Pause(node=node, replace=True):
                            self._restart_later(node)
            except Exception as e:
                self._fail(e)
                raise
            if self._gate.is_dead(event.node, event.incarnation):
                return None
            return next((answer for answer in answers if answer is not None), GO)

    def release(self, held: list[Planned]) -> None:
        """End what was in force within steps of a process that is gone."""
        with self._acting:
            for planned in held:
                self._heal(planned, "the process ended within the step")

    def wake(self) -> bool:
        """Let those go on that stand still until everybody else has done their work; whether
        there were any."""
        with self._acting:
            in_force = [
                p
                for p in self._planned
                if p.in_force and isinstance(p.fault, f.Pause) and p.fault.until is None
            ]
            for planned in in_force:
                self._heal(planned)
            return bool(in_force)

    def end(self) -> None:
        """End whatever is still in force: the run is over."""
        with self._acting:
            for planned in self._planned:
                if planned.in_force and not planned.done:
                    # A cut without an end lasts, one that has lost something has struck; any other
                    # fault had an end that never came.
                    cut = planned.fault if isinstance(planned.fault, f.Cut) else None
                    lasts = cut is not None and cut.until is None
                    struck = cut is not None and (cut.tries is None or planned.met > 0)
                    self._heal(planned, "the run ended", done=lasts and struck)

    def _begin(self, connection_id: int, taken: OpenStep, planned: Planned) -> Go | None:
        """Put a fault in force; the answer to the step, if the fault is one."""
        fault = planned.fault
        match fault:
            case f.Crash():
                self._kill(planned, fault.node, fault.restart)
            case f.Pause():
                if fault.replace:
                    self._gate.exempt(fault.node, taken.event)
                self._in_force(planned, self._actuator.pause(fault.node))
            case f.Cut():
                planned.met = int(fault.crosses(taken.event.link))
                self._in_force(planned, self._actuator.arm(fault))
            case f.Storage():
                self._in_force(planned, f"the step failed with {fault.errno}", done=True)
                return Go(fault.code)
            case f.PowerCut() if fault.node == taken.event.node:
                planned.in_force = True
                return Go(cut=fault.sync)
            case f.PowerCut():
                pass  # another node takes this step
            case _:
                self._gate.close_link_pair(connection_id, fault.link)
                taken.held.append(planned)
                self._in_force(planned, self._actuator.arm(fault))
        return None

    def power_cut(self, event: TraceEvent) -> None:
        """A process says that its power was cut, and what was lost of what it had written."""
        with self._acting:
            for planned in self._planned:
                fault = planned.fault
                if not (isinstance(fault, f.PowerCut) and planned.in_force):
                    continue
                if event.step != f"{POWER_CUT}{fault.at.step}":
                    continue
                planned.evidence.append(f"lost: {event.detail.get('lost')}")
                try:
                    self._kill(planned, fault.node, restart=True)
                except Exception as e:
                    self._fail(e)
                    raise
                self._restart_later(fault.node)

    def _kill(self, planned: Planned, node: str, restart: bool) -> None:
        if restart:
            self._gate.goes_down(node)
        incarnation, struck = self._actuator.crash(node)
        self._gate.mark_dead(node, incarnation)
        self._in_force(planned, struck.evidence, done=bool(struck.fired))

    def _in_force(self, planned: Planned, evidence: str, done: bool = False) -> None:
        planned.in_force, planned.done, planned.since = True, done, time.monotonic()
        planned.evidence.append(evidence)
        self._note_fault(planned, evidence)

    def _step_ended(self, taken: OpenStep, event: TraceEvent) -> None:
        """The step within which faults were in force has come to its end."""
        failed = event.phase == "failed"
        for planned in taken.held:
            took = (time.monotonic() - planned.since) * 1000
            error = event.detail.get("error", "no word why")
            self._heal(planned, f"step failed: {error}" if failed else f"step took {took:.0f} ms")
        taken.held.clear()

    def _heal(self, planned: Planned, seen: str = "", done: bool = True) -> None:
        if not planned.in_force:
            return
        planned.in_force = False
        fault = planned.fault
        evidence = []
        match fault:
            case f.Pause():
                evidence = [self._actuator.resume(fault.node)]
            case f.Crash() | f.Storage() | f.PowerCut():
                pass
            case f.Cut():
                evidence = [f"{planned.met} requests met it"] if fault.tries is not None else []
                evidence.append(self._actuator.heal(fault, step_failed=True).evidence)
            case _:
                failed = seen.startswith("step failed")
                if not failed:
                    self._gate.open_link_pair(
                        fault.link
                    )  # what is lost may be another step's: a reply
                healed = self._actuator.heal(fault, failed)
                self._gate.open_link_pair(fault.link)
                evidence = [healed.evidence]
                silent = isinstance(fault, f.Omit | f.OmitReply | f.Reset) and not failed
                if healed.fired is False or (healed.fired is None and silent):
                    done = False
        planned.done = done
        planned.evidence += [text for text in (seen, *evidence) if text]
        self._note_fault(planned, "; ".join(planned.evidence[1:]) or "healed")

    def _restart_later(self, node: str) -> None:
        """Start a node again while the run goes on."""
        threading.Thread(target=self._restart, args=(node,), daemon=True).start()

    def _restart(self, node: str) -> None:
        try:
            self._actuator.restart(node)
        except Exception as e:
            self._fail(e)
        finally:
            self._gate.is_back(node)

    def _note_fault(self, planned: Planned, evidence: str) -> None:
        lasts = planned.in_force and not planned.done
        self._note(
            TraceEvent(
                f"fault/{planned.fault.id}",
                "before" if lasts else "after",
                _where(planned.fault),
                detail={"evidence": evidence},
            )
        )


def _where(fault: Fault) -> str:
    match fault:
        case f.Crash() | f.Pause() | f.PowerCut():
            return fault.node
        case f.Cut():
            return fault.left[0]
        case f.Storage():
            return ""
        case _:
            return fault.link.partition("->")[0]
