"""What a run is hit by besides its steps: requests on the wire, servers, connections, executors.

A fault that lasts ends with the incarnation that it hit, or when nobody has given up on it for
so long that nobody will.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from bettong.harness.faults.actuator import InjectionOutcome
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.lost_executor import SECOND, attempt_of
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.zombie import MISSED, WAITED, WOKEN
from bettong.harness.queries.run.clients import PATIENCE_S, STANDS_STILL, UNHEARD, Clients
from bettong.harness.queries.run.endpoints import Contacts, EndpointProxies
from bettong.harness.wire import Armed, CutPoint
from bettong.harness.wire.armed import Lasts
from bettong.lineage.trace import TraceEvent

_HELD_S = 100.0
_ANSWER_S = 5.0
"""A request of a driver that has taken over and gets no answer for so long waits for what the one
that stands still has locked."""
_AMID_S = 8.0
"""A request of a driver that has taken over waits so long for the other one to come to its end;
many a client gives up after ten seconds."""
_UNAWAITED_S = 2.0
"""A driver that has not recorded a batch for so long waits for the reply to its request."""
_POLL_S = 0.02
_ALONE_POLLS = 15


class Pausable(Protocol):
    """A driver in charge that another one takes over from while it stands still."""

    def pause(self, node: str) -> InjectionOutcome: ...
    def resume(self, node: str) -> str: ...


@dataclass
class _Hold:
    """A driver that stands still until the one that takes over has come to its end, or is amid a
    batch.

    Attributes:
        successor: which start of a driver the one is that takes over.
        over: the one that stands still may go on; ``ended``: it has come to its end.
        woken: it goes on amid the other's batch; ``waited``: or because that one does not come on;
            ``missed``: or when that one has ended the work, and has found the batch done.
        past: the other one has done more of the batch than the one that stands still.
    """

    successor: int
    over: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    woken: bool = False
    waited: bool = False
    missed: bool = False
    past: bool = False


@dataclass
class FaultInjector:
    """The faults of a run that are not carried out at steps by the run's book: the
    :class:`~bettong.harness.queries.faults.query_fault.Injection` that they ask.

    Attributes:
        crash: crashes the driver now.
        lose_executor: has Spark lose sight of the executor now.
        driver: stands still and goes on.
        clients: what runs have shown of those that ask.
        evidence: of those that have fired, by id.
    """

    endpoint_proxies: EndpointProxies
    faults: Sequence[QueryFault]
    crash: Callable[[], None]
    lose_executor: Callable[[], str]
    driver: Pausable
    clients: Clients = field(default_factory=Clients)
    evidence: dict[str, str] = field(default_factory=dict)
    _armed: dict[str, Armed] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)
    _lasting: dict[str, Callable[[], object]] = field(default_factory=dict)
    _known: dict[str, Callable[[], object]] = field(default_factory=dict)
    _went_on: set[str] = field(default_factory=set)
    _holds: dict[str, _Hold] = field(default_factory=dict)
    _amid: dict[str, Armed] = field(default_factory=dict)
    _started: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _recorded: threading.Event = field(default_factory=threading.Event)
    _again: threading.Event = field(default_factory=threading.Event)
    _told: dict[str, str] = field(default_factory=dict)
    _tasks: set[str] = field(default_factory=set)
    _seconds: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, again: bool = False) -> None:
        """Put the faults on the wire in force, for the run that has begun; those that wait until
        the query is started again, ``again``."""
        for fault in self.faults:
            fault.arm(self, again)

    def hit_request(
        self,
        fault: str,
        point: CutPoint,
        lasts: Lasts,
        action: Callable[[], object] | None,
        close: bool,
        answer: bytes = b"",
    ) -> None:
        if fault in self._armed:
            return  # a batch that is begun again
        recorder = self.endpoint_proxies.recorder
        self._armed[fault] = recorder.arm(point, lasts, action, close=close, answer=answer)

    def crash_when_recorded(self) -> None:
        self._recorded.clear()
        self._recorded.wait(_UNAWAITED_S)
        self.crash()

    def restart_server(self, endpoint: str) -> None:
        self.endpoint_proxies.server(endpoint).restart()

    def pause_server(self, fault: str, endpoint: str) -> None:
        server = self.endpoint_proxies.servers.get(endpoint)
        if server is None:
            self._wait(fault, STANDS_STILL)
        else:
            server.pause()
            self._last(fault, STANDS_STILL, server.resume, self.endpoint_proxies.contacts())

    def say_nothing(self, fault: str) -> None:
        self._wait(fault, UNHEARD)

    def _wait(self, fault: str, what: str) -> None:
        over = threading.Event()
        over.wait(self._last(fault, what, over.set))

    def hold_driver(self, fault: str) -> None:
        self._told[fault] = self._hold(fault)

    def hold_driver_at(self, fault: str) -> None:
        if fault not in self._holds:
            self.evidence[fault] = self._hold(fault)

    def _hold(self, fault: str) -> str:
        hold = self._holds[fault] = _Hold(self._started + 1)
        since = self.endpoint_proxies.clock()
        told = self.driver.pause(DRIVER)
        waits = self._until_over(hold, since)
        return f"{told.evidence}; {waits}; {self.driver.resume(DRIVER)}"

    def _until_over(self, hold: _Hold, since: int) -> str:
        """Wait until the driver that takes over is done, or gets no answer; which of both."""
        waiting: dict[int, float] = {}
        while not hold.over.wait(_POLL_S):
            now, met = time.monotonic(), self.endpoint_proxies.unanswered(since)
            waiting = {order: waiting.get(order, now) for order in met}
            if any(now - begun > _ANSWER_S for begun in waiting.values()):
                return WAITED
        if hold.waited:
            return WAITED
        done = MISSED if hold.missed else "the one that took over was done"
        return WOKEN if hold.woken else done

    def wake_amid(self, fault: str, until: CutPoint) -> None:
        hold = self._holds.get(fault)
        if hold is None or hold.over.is_set() or fault in self._amid:
            return

        recorder = self.endpoint_proxies.recorder
        wake = partial(self.wake_now, fault)
        self._amid[fault] = recorder.arm(until, "once", wake, close=False, answer=b"")

    def wake_now(self, fault: str) -> None:
        hold = self._holds.get(fault)
        if hold is None or hold.over.is_set():
            return
        hold.woken = True
        hold.over.set()
        hold.ended.wait(_AMID_S)

    def goes_past(self, fault: str) -> None:
        hold = self._holds.get(fault)
        if hold is not None and not hold.over.is_set():
            hold.past = True

    def ended(self, incarnation: int) -> None:
        """A driver that another one has taken over from has come to its end."""
        for hold in self._holds.values():
            if hold.successor == incarnation + 1:
                hold.ended.set()

    def end_wait(self) -> None:
        """The driver that has taken over does not come on: what it waits for is locked by the one
        that stands still, which goes on."""
        for hold in self._holds.values():
            hold.waited = not hold.over.is_set()
            hold.over.set()

    def let_go(self, done: bool = False) -> None:
        """No driver takes over from another any more: those that stand still go on. ``done``: the
        work is."""
        for hold in self._holds.values():
            hold.missed = done and not (hold.past or hold.over.is_set())
            hold.over.set()
            hold.ended.set()

    def outlast_client(self, fault: str, what: str) -> None:
        self._last(fault, what, self._armed[fault].heal)

    def turn_away(self, fault: str, endpoint: str) -> None:
        if fault not in self._armed:
            self._armed[fault] = self.endpoint_proxies.refuse_once(endpoint)

    def refuse(self, fault: str, endpoint: str, run: str, incarnation: int) -> str:
        """From now on the endpoint refuses connections."""
        refusal = self.endpoint_proxies.refuse(run, incarnation, endpoint)
        self._last(fault, "connections are refused", refusal.heal)
        self.evidence[fault] = f"{endpoint} closed its connections and refused new ones"
        return self.evidence[fault]

    def _last(
        self, id: str, what: str, end: Callable[[], object], since: Contacts | None = None
    ) -> float:
        """A fault that lasts has fired: for the first time, or again; how long it goes on.
        ``since``: what clients had done by then, where it is seen what they do."""
        with self._lock:
            if id in self._begun:
                return 0.0
            self._begun.add(id)
            self._lasting[id] = end
        endpoint = next(fault.place for fault in self.faults if fault.id == id)
        begun, seconds = time.monotonic(), self.clients.patience_s(what, endpoint)
        soon = partial(self._outlast, id, what, endpoint)
        if seconds == PATIENCE_S:
            _in(seconds, soon)
            return seconds

        def known() -> None:
            self.clients.tell_no_more(known)
            _in(max(0.0, begun + PATIENCE_S - time.monotonic()), soon)

        self._known[id] = known
        self.clients.tell(what, endpoint, known)
        _in(seconds, partial(soon, since))
        return seconds

    def _outlast(self, id: str, what: str, endpoint: str, since: Contacts | None = None) -> None:
        """The time is up: who has taken no step meanwhile has not given up. ``since``: only where
        it was long, for in a short one who would give up may have been silent as well."""
        silent = since is not None and self.endpoint_proxies.contacts() == since
        if self._end(id) and id not in self._went_on:
            self.clients.not_given_up(what, endpoint, silent)

    def _end(self, id: str) -> bool:
        """False where it has ended before."""
        with self._lock:
            end = self._lasting.pop(id, None)
            if end is not None:
                end()
        if (known := self._known.pop(id, None)) is not None:
            self.clients.tell_no_more(known)
        return end is not None

    def met(self, event: TraceEvent) -> None:
        """A step is taken; its process waits until this returns."""
        step = StepId.parse(event.step)
        if step.ends_batch and event.phase == "after":
            self._recorded.set()
        if step.batch is not None:
            self._went_on.update(list(self._lasting))
        if step.is_task:
            (self._tasks.add if event.phase == "before" else self._tasks.discard)(event.step)
        for fault in self.faults:
            fault.met(event, self)

    def lose_executor_at(self, fault: str, event: TraceEvent, goes_on: bool) -> None:
        self._until_alone(event)
        lost = self.lose_executor()
        with self._lock:
            # The second attempt may be done before it is said that the first one is lost.
            self.evidence[fault] = f"{lost}; {SECOND}" if fault in self._seconds else lost
        (self._again if goes_on else self._over).wait(_HELD_S)

    def tried_again(self, fault: str) -> None:
        with self._lock:
            self._seconds.add(fault)
            if fault in self.evidence:
                self.evidence[fault] += f"; {SECOND}"
        self._again.set()

    def _until_alone(self, event: TraceEvent) -> None:
        """Let the tasks beside it end: which of them are lost as well must not be chance."""
        held = attempt_of(event.step)
        alone, end = 0, time.monotonic() + _HELD_S
        while alone < _ALONE_POLLS and time.monotonic() < end:
            time.sleep(_POLL_S)
            begun = [task for task in list(self._tasks) if attempt_of(task) != held]
            alone = 0 if begun else alone + 1

    def starts(self) -> None:
        """A new incarnation meets only what has not fired yet."""
        self.heal()
        self._started += 1
        awaited = {fault.id for fault in self.faults if fault.wakes_amid}
        for id, hold in self._holds.items():
            if hold.successor < self._started and id not in awaited:
                hold.over.set()
        if self._started == 2:
            self.arm(again=True)

    def heal(self) -> None:
        """End what lasts and has fired."""
        for id in list(self._lasting):
            self._end(id)
        for armed in self._armed.values():
            if armed.evidence().fired:
                armed.heal()

    @property
    def fired(self) -> int:
        """How many of the faults have fired so far."""
        armed = {id for id, armed in self._armed.items() if armed.evidence().fired}
        return len(armed | self.evidence.keys())

    def end(self) -> tuple[str, ...]:
        """Nothing lasts any longer; the ids of those that have not fired."""
        self.heal()
        for armed in self._amid.values():
            armed.heal()
        for id, armed in self._armed.items():
            found = armed.heal()
            if found.fired:
                told = f"; {self._told[id]}" if id in self._told else ""
                self.evidence[id] = f"hit {found.request}, {found.times} time(s){told}"
        return tuple(x.id for x in self.faults if x.beside_steps and not self._has_fired(x))

    def _has_fired(self, fault: QueryFault) -> bool:
        evidence = self.evidence.get(fault.id)
        return evidence is not None and fault.proven(evidence)

    def release(self) -> None:
        """Whoever is held may go on: nothing that it does matters any more."""
        self._again.set()
        self._over.set()
        self.let_go()


def _in(seconds: float, call: Callable[[], object]) -> None:
    """Call it then, beside all else; the process ends without."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
