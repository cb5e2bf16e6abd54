"""What a run is hit by besides its steps: requests on the wire, servers, connections, executors.

A fault that lasts ends with the incarnation that it hit, or when nobody has given up on it for
so long that nobody will.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bettong.harness.faults import kinds as f
from bettong.harness.queries.faults.kinds import AnyFault, LostExecutor, RefusedOnce
from bettong.harness.queries.faults.wire import WireFault
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.wire import Armed
from bettong.lineage.trace import TraceEvent

PATIENCE_S = 12.0
"""How long a server stands still, refuses connections or loses a reply again and again, when the
client does not give up."""
_HELD_S = 100.0
_POLL_S = 0.02
_ALONE_POLLS = 15
_SECOND = "a second attempt did its work meanwhile"
_TASK = re.compile(r"batch=(?P<batch>\d+)/(?:stage=(?P<stage>\d+)/)?p=(?P<p>\d+)/a=(?P<a>\d+)/")
_STATE = re.compile(r"batch=(\d+)/state/op=\d+/p=(\d+)/")

_Handled = WireFault | LostExecutor | RefusedOnce | f.Cut


@dataclass
class FaultInjector:
    """The faults of a run that are not carried out at steps by the run's book.

    Attributes:
        crash: crashes the driver now.
        lose_executor: has Spark lose sight of the executor now.
        evidence: of those that have fired, by id.
    """

    endpoint_proxies: EndpointProxies
    faults: Sequence[AnyFault]
    crash: Callable[[], None]
    lose_executor: Callable[[], str]
    evidence: dict[str, str] = field(default_factory=dict)
    _armed: dict[str, Armed] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)
    _lasting: dict[str, Callable[[], object]] = field(default_factory=dict)
    _started: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _again: threading.Event = field(default_factory=threading.Event)
    _tasks: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, again: bool = False) -> None:
        """Put the faults on the wire in force, for the run that has begun; those that wait until
        the query is started again, ``again``."""
        for fault in self.faults:
            if isinstance(fault, WireFault) and again == (fault.point.match == "since"):
                self._armed[fault.id] = self.endpoint_proxies.recorder.arm(
                    fault.point,
                    "retries" if fault.how == "always lost" else "once",
                    self._action(fault),
                    close=fault.how != "paused",
                )

    def _action(self, fault: WireFault) -> Callable[[], object] | None:
        if fault.how == "crash":
            return self.crash
        if fault.how == "restarted":
            return lambda: self.endpoint_proxies.server(fault.point.endpoint).restart()
        if fault.how == "paused":
            return lambda: self._pause(fault)
        if fault.how == "always lost":
            return lambda: self._last(fault.id, self._armed[fault.id].heal)
        return None

    def _pause(self, fault: WireFault) -> None:
        server = self.endpoint_proxies.server(fault.point.endpoint)
        server.pause()
        self._last(fault.id, server.resume)

    def refuse(self, fault: str, endpoint: str, run: str, incarnation: int) -> str:
        """From now on the endpoint refuses connections."""
        refusal = self.endpoint_proxies.refuse(run, incarnation, endpoint)
        self._last(fault, refusal.heal)
        self.evidence[fault] = f"{endpoint} closed its connections and refused new ones"
        return self.evidence[fault]

    def _last(self, id: str, end: Callable[[], object]) -> None:
        """A fault that lasts has fired: for the first time, or again."""
        with self._lock:
            if id in self._begun:
                return
            self._begun.add(id)
            self._lasting[id] = end
        timer = threading.Timer(PATIENCE_S, self._end, (id,))
        timer.daemon = True
        timer.start()

    def _end(self, id: str) -> None:
        with self._lock:
            end = self._lasting.pop(id, None)
            if end is not None:
                end()

    def met(self, event: TraceEvent) -> None:
        """A step is taken; its process waits until this returns."""
        if event.step.endswith("/task"):
            (self._tasks.add if event.phase == "before" else self._tasks.discard)(event.step)
        for fault in self.faults:
            if not isinstance(fault, LostExecutor | RefusedOnce):
                continue
            here = (event.step, event.phase) == (fault.at.step, fault.at.phase)
            if isinstance(fault, RefusedOnce):
                if here and fault.id not in self._armed:
                    self._armed[fault.id] = self.endpoint_proxies.refuse_once(fault.endpoint)
            elif here and fault.id not in self.evidence:
                self._until_alone(event)
                self.evidence[fault.id] = self.lose_executor()
                (self._again if fault.goes_on else self._over).wait(_HELD_S)
            elif event.phase == "after" and _second_attempt(event, fault.at.step):
                self.evidence[fault.id] += f"; {_SECOND}"
                self._again.set()

    def _until_alone(self, event: TraceEvent) -> None:
        """Let the tasks beside it end: which of them are lost as well must not be chance."""
        alone, end = 0, time.monotonic() + _HELD_S
        while alone < _ALONE_POLLS and time.monotonic() < end:
            time.sleep(_POLL_S)
            begun = [task for task in list(self._tasks) if not _same_attempt(task, event.step)]
            alone = 0 if begun else alone + 1

    def starts(self) -> None:
        """A new incarnation meets only what has not fired yet."""
        self.heal()
        self._started += 1
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
        for id, armed in self._armed.items():
            found = armed.heal()
            if found.fired:
                self.evidence[id] = f"hit {found.request}, {found.times} time(s)"
        reported = [x for x in self.faults if isinstance(x, _Handled)]
        return tuple(x.id for x in reported if not self._has_fired(x))

    def _has_fired(self, fault: _Handled) -> bool:
        reported = self.evidence.get(fault.id)
        return reported is not None and (not isinstance(fault, LostExecutor) or _SECOND in reported)

    def release(self) -> None:
        """Whoever is held may go on: nothing that it does matters any more."""
        self._again.set()
        self._over.set()


def _attempt(step: str) -> tuple[str, ...] | None:
    """Batch, partition and attempt that a step belongs to; a state file is an attempt's too, and
    where one is held it is the first one's."""
    found, state = _TASK.match(step), _STATE.match(step)
    if found is not None:
        return found["batch"], found["p"], found["a"]
    return None if state is None else (*state.groups(), "0")


def _same_attempt(task: str, step: str) -> bool:
    """Whether a task's step is that of the attempt that another step belongs to."""
    found = _attempt(step)
    return found is not None and _attempt(task) == found


def _second_attempt(event: TraceEvent, first: str) -> bool:
    """Whether a step is the end of the second attempt at the task that another one belongs to.

    Where the task reads a shuffle, what it read is lost with the executor: the second attempt is
    the first one of its stage's second attempt. A state file is the second attempt's when it is
    there while the first one is still held before its own.
    """
    if _STATE.match(first):
        return event.step == first
    found, task = _TASK.match(first), _TASK.match(event.step)
    if not (found and task and event.step.endswith("/task")):
        return False
    same = (task["batch"], task["p"]) == (found["batch"], found["p"])
    same_stage = found["stage"] in (None, task["stage"])
    again = task["a"] == "1" or int(event.detail.get("stageAttempt", 0)) > 0
    return same and same_stage and again
