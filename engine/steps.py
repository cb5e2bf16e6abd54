"""Steps: the points at which a run can be watched and where faults are placed.

Code marks what it does with :func:`step`. In production nothing listens and a step costs one
function call. Under test a :class:`Recorder` is installed, which tells the conductor of the
harness before and after every step and goes on only when it has answered.

Wire protocol with the conductor (TCP, one JSON object a line, one answer for each request)::

    -> {"run": R, "pid": P, "event": TraceEvent}
    <- {"go": true} | {"go": false, "error": TEXT} | {"go": true, "errno": 28}
     | {"go": true, "errno": 5, "call": 3} | {"go": true, "errno": 0, "call": 1}
     | {"go": true, "errno": 5, "call": 3, "lasting": true} | {"go": true, "errno": 5, "read": 2}
     | {"go": true, "errno": 5, "call": 3, "done": true}
     | {"go": true, "cut": 2} | {"go": true, "hold": 3} | {"go": true, "answer": VALUE}

``go: false`` means that the run is over: the process must not go on. ``errno`` asks the step to
fail as the operating system would (a storage fault); with ``call: N`` not the step but the N-th
call to the disk from here on, until the thread is at its next step; without an error that call
writes a part only; ``lasting``: every call from that one on; ``done``: the call is made, and fails
after that; with ``read: N`` it is the N-th time
that a file or a folder is opened to be read, which is counted apart. ``cut: N`` ends the process
right before the N-th ``sync``, by a kill or a power cut; ``hold: N`` has the thread stand still
right before the N-th call. The process says when it gets there, by an event ``disk-fault/STEP``,
``power-cut/STEP``, which gets no answer, or ``disk-stall/STEP``, which is answered when the thread
may go on. ``answer`` is what a step that asks is told, such as when a batch's wait ends. A client
that has not reached its peer says so by an event ``unreached/LINK``, which is no step; it is told
whether the peer was down and is back.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from bettong.engine.address import Address
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange, Phase, TraceEvent

ENV_CONDUCTOR = "BETTONG_CONDUCTOR"
ENV_TRACE = "BETTONG_TRACE"
ENV_RUN = "BETTONG_RUN"
ENV_NODE = "BETTONG_NODE"
ENV_INCARNATION = "BETTONG_INCARNATION"
ENV_DISK = "BETTONG_DISK"

DISK_FAULT = "disk-fault/"
POWER_CUT = "power-cut/"
DISK_STALL = "disk-stall/"
UNREACHED = "unreached/"
_MOST_CALLS = 4000
"""Calls to the disk told with one event; of more only the number is told."""


class RunOverError(BettongError):
    """The conductor has ended the run that this process belongs to."""


class Recorder(Protocol):
    """Where events go. ``notify`` returns when the process may go on."""

    def notify(self, event: TraceEvent) -> None: ...


@dataclass(frozen=True)
class Instrumentation:
    """Which recorder a process uses; picklable, so that a driver can hand it to its tasks.

    Attributes:
        run: name of the run, so that a process left over from an earlier one is distinguished.
        node: the node that this process belongs to.
        incarnation: which process of that node, counted from 1 at each restart.
        conductor: ``host:port`` of the conductor, or None.
        trace: file to which events are appended when there is no conductor, or None.
        disk: folder where each node keeps account of what it has not made durable yet, or None.
    """

    run: str = ""
    node: str = ""
    incarnation: int = 1
    conductor: str | None = None
    trace: str | None = None
    disk: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Instrumentation:
        """What the environment asks for; with nothing set, nothing is recorded."""
        return cls(
            run=env.get(ENV_RUN, ""),
            node=env.get(ENV_NODE, ""),
            incarnation=int(env.get(ENV_INCARNATION, "1")),
            conductor=env.get(ENV_CONDUCTOR) or None,
            trace=env.get(ENV_TRACE) or None,
            disk=env.get(ENV_DISK) or None,
        )

    def to_env(self) -> dict[str, str]:
        """The environment variables that make a child process the same."""
        return {
            ENV_RUN: self.run,
            ENV_NODE: self.node,
            ENV_INCARNATION: str(self.incarnation),
            ENV_CONDUCTOR: self.conductor or "",
            ENV_TRACE: self.trace or "",
            ENV_DISK: self.disk or "",
        }

    def on(self, node: str, incarnation: int = 1) -> Instrumentation:
        """The same run as seen from another node."""
        return replace(self, node=node, incarnation=incarnation)

    def recorder(self) -> Recorder | None:
        """A new recorder, or None when nothing is to be recorded."""
        if self.conductor is not None:
            return ConductorRecorder(self.conductor, self.run)
        if self.trace is not None:
            return FileRecorder(Path(self.trace))
        return None


class ConductorRecorder:
    """Tells the conductor and waits for its answer. Each thread has its own connection, so that
    a step on which the conductor holds one thread does not hold the others."""

    def __init__(self, address: str, run: str) -> None:
        self._address = Address.parse(address)
        self._run_json = json.dumps(run)
        self._local = threading.local()

    def notify(self, event: TraceEvent) -> None:
        line = f'{{"run":{self._run_json},"pid":{os.getpid()},"event":{event.to_json()}}}\n'
        try:
            answer = json.loads(self._exchange(line.encode()))
        except (OSError, ValueError) as e:
            raise RunOverError(f"step {event.step}: the conductor does not answer ({e})") from e
        if not answer.get("go"):
            raise RunOverError(f"step {event.step}: {answer.get('error', 'the run is over')}")
        _present.answer = answer.get("answer")
        code, call = int(answer.get("errno", 0)), int(answer.get("call", 0))
        read = int(answer.get("read", 0))
        if code and not call and not read:
            raise OSError(code, os.strerror(code))
        lasting, done = bool(answer.get("lasting")), bool(answer.get("done"))
        cut, hold = int(answer.get("cut", 0)), int(answer.get("hold", 0))
        _present.orders = Orders(call, code, cut, hold, lasting, read, done)

    def _exchange(self, line: bytes) -> bytes:
        local = self._local
        if getattr(local, "pid", None) != os.getpid():  # also after a fork
            sock = socket.create_connection(self._address, timeout=10)
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            local.file = sock.makefile("rwb")
            local.pid = os.getpid()
            sock.close()  # the file keeps the connection
        local.file.write(line)
        local.file.flush()
        answer: bytes = local.file.readline()
        if not answer:
            raise OSError("connection closed")
        return answer


class FileRecorder:
    """Appends events to a file, one write for each, so that a killed process leaves at most one
    torn line."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def notify(self, event: TraceEvent) -> None:
        os.write(self._fd, event.to_json().encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Orders:
    """What the conductor wants done to calls of the disk: ``errno`` for the ``call``-th (0: it
    writes a part only), and, if that is ``lasting``, for all that follow, or, if it is ``done``,
    once that has done its work; the end of the process before the ``cut``-th sync; that the thread
    stands still before the ``hold``-th call; ``errno``
    for the ``read``-th time that something is opened to be read; 0 for none."""

    call: int = 0
    errno: int = 0
    cut: int = 0
    hold: int = 0
    lasting: bool = False
    read: int = 0
    done: bool = False

    def hits(self, call: int) -> bool:
        """Whether the so-manieth call is one of these."""
        return call == self.call or (self.lasting and 0 < self.call < call)


@dataclass(slots=True)
class Edge:
    """Where a thread is: after this edge of a step (None: before its first), and before the next
    one. The calls to the disk that it makes there are numbered from 1."""

    recorder: Recorder
    event: TraceEvent | None = None
    phase: Phase = "before"
    orders: Orders = field(default_factory=Orders)
    calls: int = 0
    syncs: int = 0
    reads: list[str] = field(default_factory=list)
    _told: int = 0
    _unreported: list[list[Any]] = field(default_factory=list)

    def await_turn(self, operation: str, path: str) -> None:
        """A call to the disk is about to be made: where the thread is to stand still before it, it
        does."""
        if self.calls + 1 == self.orders.hold:
            self._notify(DISK_STALL, call=self.orders.hold, operation=operation, path=path)

    def call(self, operation: str, path: str) -> Orders | None:
        """A call to the disk is about to be made. Returns the orders when it must not go well;
        where the process is to end it goes no further."""
        self.calls += 1
        if operation.startswith("sync"):
            self.syncs += 1
            if self.syncs == self.orders.cut:
                self._notify(POWER_CUT, call=self.calls, operation=operation, path=path)
                raise RunOverError("the process ends here")
        if not self.orders.hits(self.calls):
            return None
        if self.orders.errno == 0 and operation != "append":
            return None  # nothing but a write can be short
        if self.orders.done:
            return None if operation == "open" else self.orders  # nobody could close the file
        if self.calls == self.orders.call:
            self._notify(DISK_FAULT, call=self.calls, operation=operation, path=path)
        return self.orders

    def denied(self, operation: str, path: str) -> None:
        """The call has done its work, and fails all the same."""
        self._notify(DISK_FAULT, call=self.orders.call, operation=operation, path=path)

    def read(self, path: str) -> int:
        """Something is about to be opened to be read. Returns the error with which that fails, 0
        where it does not."""
        self.reads.append(path)
        if len(self.reads) != self.orders.read:
            return 0
        self._notify(DISK_FAULT, call=len(self.reads), operation="read", path=path)
        return self.orders.errno

    def done(self, number: int, call: Sequence[str | int], size: int) -> None:
        """A call has been made, or a sync has failed: its number, the operation with its operands
        and the checksum of what it wrote, and how many bytes that were."""
        told = _outside_steps if self.event is None else self._unreported
        told.append([number, *call, size])

    def report(self) -> dict[str, Any]:
        """The calls since they were last told, for the thread's next event; with it those of all
        threads of this process that had taken no step, for they may end without one."""
        calls, outside = self._unreported, _taken_from(_outside_steps)
        self._unreported = []
        report: dict[str, Any] = {}
        reads, self._told = self.reads[self._told :], len(self.reads)
        if (calls or reads) and self.event is not None:
            report = {"after": f"{self.phase} {self.event.step}", "calls": calls[:_MOST_CALLS]}
            if reads:
                report["reads"] = reads[:_MOST_CALLS]
        if outside:
            report["outside"] = outside[:_MOST_CALLS]
        left = sum(max(0, len(some) - _MOST_CALLS) for some in (calls, reads, outside))
        return {"disk": {**report, "more": left}} if report else {}

    def _notify(self, what: str, **detail: Any) -> None:
        assert self.event is not None  # orders are given at edges alone
        event = replace(self.event, step=f"{what}{self.event.step}", detail=detail)
        self.recorder.notify(event)


@dataclass(slots=True)
class Step:
    """A step being taken. What it learns on the way goes into its last event.

    Attributes:
        answer: what the conductor answers to a step that asks; None where it has nothing to say.
    """

    recorder: Recorder
    event: TraceEvent
    answer: Any = None
    _causes: list[str] = field(default_factory=list)
    _carries: list[MessageRange] = field(default_factory=list)
    _detail: dict[str, Any] = field(default_factory=dict)
    _outer: Step | None = None
    _edge: Edge | None = None

    def caused_by(self, *steps: str) -> None:
        self._causes += steps

    def carries(self, *ranges: MessageRange) -> None:
        self._carries += ranges

    def note(self, **detail: Any) -> None:
        self._detail.update(detail)

    def _notify(self, phase: Phase) -> Edge:
        """Tell of an edge of this step; the thread is there now."""
        before = current_edge()
        disk = before.report() if before is not None else {}
        _present.orders = Orders()
        self.recorder.notify(
            replace(
                self.event,
                phase=phase,
                causes=tuple(dict.fromkeys((*self.event.causes, *self._causes))),
                carries=(*self.event.carries, *self._carries),
                detail={**self.event.detail, **self._detail, **disk},
            )
        )
        return Edge(self.recorder, self.event, phase, _present.orders)

    def __enter__(self) -> Step:
        try:
            self._edge = self._notify("before")
        except OSError as e:
            self._detail["error"] = f"{type(e).__name__}: {e}"
            self._notify("failed")
            raise
        self.answer = getattr(_present, "answer", None)
        self._outer = getattr(_present, "step", None)
        _present.step, _present.edge = self, self._edge
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, RunOverError):
            self._leave(None)
            return
        if error is not None:
            self._detail["error"] = f"{type(error).__name__}: {error}"
        edge = None
        try:
            edge = self._notify("after" if error is None else "failed")
        finally:
            self._leave(edge)

    def _leave(self, edge: Edge | None) -> None:
        """The thread is within the step around this one again, or between steps."""
        _present.step = self._outer
        _present.edge = self._outer._edge if self._outer is not None else edge


class _NullStep:
    __slots__ = ()
    answer = None

    def caused_by(self, *steps: str) -> None:
        pass

    def carries(self, *ranges: MessageRange) -> None:
        pass

    def note(self, **detail: Any) -> None:
        pass

    def __enter__(self) -> _NullStep:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def _taken_from(calls: deque[list[Any]]) -> list[list[Any]]:
    found = []
    with suppress(IndexError):
        while True:
            found.append(calls.popleft())
    return found


_NULL = _NullStep()
_outside_steps: deque[list[Any]] = deque()
_present = threading.local()
_instrumentation = Instrumentation()
_recorder: Recorder | None = None


def install(instrumentation: Instrumentation) -> None:
    """Make this process record as asked; the same again changes nothing. What nobody has been told
    of by then is not of the run that begins."""
    global _instrumentation, _recorder
    if instrumentation != _instrumentation:
        _instrumentation = instrumentation
        _recorder = instrumentation.recorder()
        _outside_steps.clear()


def installed() -> Instrumentation:
    """What this process records with, to be handed on to tasks and children."""
    return _instrumentation


def is_recorded() -> bool:
    """Whether this process records its steps."""
    return _recorder is not None


def peer_is_back(link: str) -> bool:
    """Whether the peer of a link, which could not be reached, was down and is back by now. Under
    test this waits for it: how often a client asks in vain meanwhile is a matter of the clock."""
    if not isinstance(_recorder, ConductorRecorder):
        return False
    node, incarnation = _instrumentation.node, _instrumentation.incarnation
    _recorder.notify(TraceEvent(f"{UNREACHED}{link}", "before", node, incarnation, link=link))
    return bool(_present.answer)


def current_edge() -> Edge | None:
    """Where this thread is, where steps are recorded: before its first one again where another
    recorder was installed since."""
    found: Edge | None = getattr(_present, "edge", None)
    if _recorder is not None and (found is None or found.recorder is not _recorder):
        found = _present.edge = Edge(_recorder)
    return found


def step(
    name: str,
    *,
    causes: Iterable[str] = (),
    carries: Iterable[MessageRange] = (),
    link: str | None = None,
    **detail: Any,
) -> Step | _NullStep:
    """Mark a block of code as one step::

        with step("batch=3/sink.commit", causes=[...], link="driver->receiver") as s:
            reply = ...
            s.caused_by(reply.step)

    Raises RunOverError when the conductor has ended the run, and OSError when it injects a
    storage fault here.
    """
    recorder = _recorder
    if recorder is None:
        return _NULL
    return Step(
        recorder,
        TraceEvent(
            name,
            "before",
            _instrumentation.node,
            _instrumentation.incarnation,
            tuple(causes),
            tuple(carries),
            link,
            detail,
        ),
    )
