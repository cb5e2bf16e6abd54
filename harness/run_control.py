"""What one run has done so far, and the faults that are put in force at its steps.

Counts the occurrences of each step, records the trace in the order in which events arrive, and
before a step is answered carries out what the schedule places there. Faults reach the world
through an :class:`Actuator`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bettong.harness import faults as f
from bettong.harness.faults import Fault, Point
from bettong.harness.schedule import Schedule
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import TraceEvent

DRAIN_TIMEOUT = 10.0
RESTART_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Struck:
    """What a fault has done: whether it struck anything, None where nobody can tell."""

    fired: bool | None
    evidence: str


class Actuator(Protocol):
    """Does to nodes and links what a fault asks. Every call returns when its effect is in force
    and tells the evidence for it. A fault that cannot be put in force raises BettongError."""

    def crash(self, node: str) -> tuple[int, Struck]:
        """Kill a node: its incarnation that is dead now, and whether it lived until then."""

    def restart(self, node: str) -> None:
        """Start a node again; where it stands still, another one beside it."""

    def pause(self, node: str) -> str: ...
    def resume(self, node: str) -> str: ...
    def arm(self, fault: f.LinkFault | f.Cut) -> str: ...
    def heal(self, fault: f.LinkFault | f.Cut, step_failed: bool) -> Struck:
        """Mend the link. When the step did not fail, as it waits for no reply, first wait until
        the fault has struck what the step has sent."""


@dataclass(frozen=True, slots=True)
class Go:
    """The answer to a step that may go on; with ``errno`` it fails as the system would."""

    errno: int | None = None


class RunRefusedError(BettongError):
    """A step of a process that does not belong to the run any more."""


@dataclass(slots=True)
class _Planned:
    """A fault of the schedule and how far it has come."""

    fault: Fault
    evidence: list[str] = field(default_factory=list)
    in_force: bool = False
    done: bool = False
    since: float = 0.0


@dataclass(slots=True)
class _Taken:
    """A step between its first and its last event."""

    event: TraceEvent
    occurrence: int
    held: list[_Planned] = field(default_factory=list)


class RunControl:
    """The book of one run.

    Attributes:
        run: the run's name; processes that name another are refused.
        events: the trace so far, in the order of arrival.
        times: when each of them came, in seconds of a monotonic clock.
        failure: what went wrong while a fault was being carried out, if anything did.
    """

    def __init__(
        self,
        run: str,
        actuator: Actuator,
        schedule: Schedule = Schedule(),  # noqa: B008 - immutable
        trace: Path | None = None,
        normalise: Callable[[TraceEvent], TraceEvent] | None = None,
    ) -> None:
        self.run = run
        self.events: list[TraceEvent] = []
        self.times: list[float] = []
        self.failure: Exception | None = None
        self._actuator = actuator
        self._normalise = normalise
        self._trace = trace.open("w", encoding="utf-8") if trace else None
        self._planned = [_Planned(fault) for fault in schedule.faults]
        self._starts: dict[Point, list[_Planned]] = {}
        self._ends: dict[Point, list[_Planned]] = {}
        for planned in self._planned:
            self._starts.setdefault(f.points(planned.fault)[0], []).append(planned)
            if isinstance(planned.fault, f.Cut | f.Pause) and planned.fault.until is not None:
                self._ends.setdefault(planned.fault.until, []).append(planned)
        self._closed_lanes: dict[frozenset[str], int] = {}
        self._counts: Counter[str] = Counter()
        self._taken: dict[int, list[_Taken]] = {}
        self._dead: dict[str, int] = {}
        self._down: set[str] = set()
        self._over = False
        self._repeats = 0
        self._latest = time.monotonic()
        self._changed = threading.Condition()
        self._acting = threading.RLock()

    # --- what others read

    @property
    def evidence(self) -> dict[str, str]:
        """For each fault that fired, by id, the proof that it did."""
        return {p.fault.id: "; ".join(p.evidence) for p in self._planned if p.done}

    @property
    def not_fired(self) -> tuple[str, ...]:
        """Ids of the planned faults that were not carried out from beginning to end."""
        return tuple(p.fault.id for p in self._planned if not p.done)

    @property
    def repeats(self) -> int:
        """How many steps were taken since one was taken for the first time."""
        return self._repeats

    @property
    def idle_seconds(self) -> float:
        """Seconds since anything happened."""
        return time.monotonic() - self._latest

    def standing(self) -> str:
        """Where the run stands: the steps that have begun and not ended, and the last one told."""
        with self._changed:
            open_steps = sorted({t.event.step for stack in self._taken.values() for t in stack})
            last = self.events[-1] if self.events else None
        begun = ", ".join(open_steps[:8]) or "no step is open"
        return f"open: {begun}; last: {last.phase} {last.step}" if last else "no step was taken"

    def occurrences(self, step: str) -> int:
        """How often a step has been begun."""
        return self._counts[step]

    def wait(self, reached: Callable[[], bool], timeout: float) -> bool:
        """Wait until ``reached`` holds, which is asked again after each event."""
        with self._changed:
            return self._changed.wait_for(lambda: reached() or self.failure is not None, timeout)

    def note(self, event: TraceEvent) -> None:
        """Record something that the harness itself has done."""
        with self._changed:
            self._record(event)

    # --- what the conductor calls

    def tell(self, taker: int, event: TraceEvent) -> Go | None:
        """A process is at a step; the answer, or None when the process is dead by now.

        Raises RunRefusedError when the process must not go on.
        """
        if self._normalise is not None:
            event = self._normalise(event)
        with self._changed:
            self._refuse_the_dead(event)
            begun = event.phase == "before"
            taken = self._enter(taker, event) if begun else self._leave(taker, event)
            self._record(event)
            ends, starts = self._due(event, taken)
        ended_held = event.phase != "before" and taken.held
        if not (ends or starts or ended_held):
            return _GO
        with self._acting:
            try:
                return self._act(taker, taken, event, ends, starts)
            except Exception as e:
                self._fail(e)
                raise

    def gone(self, taker: int) -> None:
        """A connection has closed: what its steps held in force is healed."""
        with self._changed:
            left = self._taken.pop(taker, [])
            self._changed.notify_all()
        held = [planned for taken in left for planned in taken.held]
        if held:
            with self._acting:
                for planned in held:
                    self._heal(planned, "the process ended within the step")

    def close(self) -> None:
        """End the run: nobody of it goes on, what is in force is healed."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        with self._acting:
            for planned in self._planned:
                if planned.in_force and not planned.done:
                    # A cut without an end lasts; any other fault had an end that never came.
                    lasts = isinstance(planned.fault, f.Cut) and planned.fault.until is None
                    self._heal(planned, "the run ended", done=lasts)
            if self._trace is not None:
                self._trace.close()
                self._trace = None

    # --- the book

    def _refuse_the_dead(self, event: TraceEvent) -> None:
        if self._over:
            raise RunRefusedError(f"run {self.run} is over")
        if event.incarnation <= self._dead.get(event.node, 0):
            raise RunRefusedError(f"incarnation {event.incarnation} of {event.node} is dead")

    def _enter(self, taker: int, event: TraceEvent) -> _Taken:
        if self._down and event.link is not None:
            # How often a client asks a node in vain until it is back is a matter of the clock.
            asked = event.link.partition("->")[2]
            self._changed.wait_for(
                lambda: self._over or self.failure is not None or asked not in self._down,
                RESTART_TIMEOUT,
            )
            self._refuse_the_dead(event)
        if self._closed_lanes and event.link is not None:
            lane = _lane(event.link)
            self._changed.wait_for(
                lambda: self._over or self._closed_lanes.get(lane, taker) == taker, DRAIN_TIMEOUT
            )
            self._refuse_the_dead(event)
        self._counts[event.step] += 1
        taken = _Taken(event, self._counts[event.step])
        self._taken.setdefault(taker, []).append(taken)
        self._repeats = 0 if taken.occurrence == 1 else self._repeats + 1
        return taken

    def _leave(self, taker: int, event: TraceEvent) -> _Taken:
        stack = self._taken.get(taker, [])
        for i in range(len(stack) - 1, -1, -1):
            if stack[i].event.step == event.step:
                return stack.pop(i)
        return _Taken(event, self._counts[event.step] or 1)

    def _record(self, event: TraceEvent) -> None:
        self.events.append(event)
        self._latest = time.monotonic()
        self.times.append(self._latest)
        if self._trace is not None:
            self._trace.write(event.to_json() + "\n")
        self._changed.notify_all()

    # --- faults

    def _due(self, event: TraceEvent, taken: _Taken) -> tuple[list[_Planned], list[_Planned]]:
        """The faults that end at this moment, and those that begin."""
        if event.phase == "failed" or not (self._starts or self._ends):
            return [], []
        point = Point(event.step, event.phase, taken.occurrence)
        return self._ends.pop(point, []), self._starts.pop(point, [])

    def _act(
        self,
        taker: int,
        taken: _Taken,
        event: TraceEvent,
        ends: list[_Planned],
        starts: list[_Planned],
    ) -> Go | None:
        if event.phase != "before":
            self._step_ended(taken, event)
        for planned in ends:
            self._heal(planned)
        answer = _GO
        for planned in starts:
            fault = planned.fault
            match fault:
                case f.Crash():
                    if fault.restart:
                        self._down.add(fault.node)
                    incarnation, struck = self._actuator.crash(fault.node)
                    with self._changed:
                        self._dead[fault.node] = max(incarnation, self._dead.get(fault.node, 0))
                    self._in_force(planned, struck.evidence, done=bool(struck.fired))
                case f.Pause():
                    self._in_force(planned, self._actuator.pause(fault.node))
                case f.Cut():
                    self._in_force(planned, self._actuator.arm(fault))
                case f.Storage():
                    answer = Go(fault.code)
                    self._in_force(planned, f"the step failed with {fault.errno}", done=True)
                case _:
                    self._close_lane(taker, _lane(fault.link))
                    taken.held.append(planned)
                    self._in_force(planned, self._actuator.arm(fault))
        for planned in starts:
            match planned.fault:
                case f.Crash(node=node, restart=True):
                    self._restart_later(node)
                case f.Pause(node=node, replace=True):
                    self._restart_later(node)
        return None if event.incarnation <= self._dead.get(event.node, 0) else answer

    def _in_force(self, planned: _Planned, evidence: str, done: bool = False) -> None:
        planned.in_force, planned.done, planned.since = True, done, time.monotonic()
        planned.evidence.append(evidence)
        self._note_fault(planned, evidence)

    def _step_ended(self, taken: _Taken, event: TraceEvent) -> None:
        """The step within which faults were in force has come to its end."""
        failed = event.phase == "failed"
        for planned in taken.held:
            took = (time.monotonic() - planned.since) * 1000
            error = event.detail.get("error", "no word why")
            self._heal(planned, f"step failed: {error}" if failed else f"step took {took:.0f} ms")
        taken.held.clear()

    def _heal(self, planned: _Planned, seen: str = "", done: bool = True) -> None:
        if not planned.in_force:
            return
        planned.in_force = False
        fault = planned.fault
        evidence = []
        match fault:
            case f.Pause():
                evidence = [self._actuator.resume(fault.node)]
            case f.Crash() | f.Storage():
                pass
            case f.Cut():
                evidence = [self._actuator.heal(fault, step_failed=True).evidence]
            case _:
                failed = seen.startswith("step failed")
                if not failed:
                    self._open_lane(fault)  # what is lost may be another step's: a reply
                healed = self._actuator.heal(fault, failed)
                self._open_lane(fault)
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
            with self._changed:
                self._down.discard(node)
                self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._changed:
            if not self._over and self.failure is None:
                self.failure = error
            self._changed.notify_all()

    def _note_fault(self, planned: _Planned, evidence: str) -> None:
        lasts = planned.in_force and not planned.done
        self.note(
            TraceEvent(
                f"fault/{planned.fault.id}",
                "before" if lasts else "after",
                _where(planned.fault),
                detail={"evidence": evidence},
            )
        )
        if self._trace is not None:
            self._trace.flush()

    def _close_lane(self, taker: int, lane: frozenset[str]) -> None:
        """Let nobody else use a link, and wait until whoever does has finished."""
        with self._changed:
            self._closed_lanes[lane] = taker
            self._changed.wait_for(
                lambda: (
                    self._over
                    or not any(
                        taken.event.link is not None and _lane(taken.event.link) == lane
                        for other, stack in self._taken.items()
                        if other != taker
                        for taken in stack
                    )
                ),
                DRAIN_TIMEOUT,
            )

    def _open_lane(self, fault: f.LinkFault) -> None:
        with self._changed:
            self._closed_lanes.pop(_lane(fault.link), None)
            self._changed.notify_all()


_GO = Go()


def _lane(link: str) -> frozenset[str]:
    """Both directions of a link: they share the connections."""
    return frozenset(link.split("->"))


def _where(fault: Fault) -> str:
    match fault:
        case f.Crash() | f.Pause():
            return fault.node
        case f.Cut():
            return fault.left[0]
        case f.Storage():
            return ""
        case _:
            return fault.link.partition("->")[0]
