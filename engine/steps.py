"""Steps: the points at which a run can be watched and where faults are placed.

Code marks what it does with :func:`step`. In production nothing listens and a step costs one
function call. Under test a :class:`Recorder` is installed, which tells the conductor of the
harness before and after every step and goes on only when it has answered.

Wire protocol with the conductor (TCP, one JSON object a line, one answer for each request)::

    -> {"run": R, "pid": P, "event": TraceEvent}
    <- {"go": true} | {"go": false, "error": TEXT} | {"go": true, "errno": 28}
     | {"go": true, "cut": 2} | {"go": true, "answer": VALUE}

``go: false`` means that the run is over: the process must not go on. ``errno`` asks the step to
fail as the operating system would (a storage fault). ``cut: N`` cuts the power right before the
N-th thing becomes durable that the step syncs; the process says so, and gets no answer. ``answer``
is what a step that asks is told, such as when a batch's wait ends.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Protocol

from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange, Phase, TraceEvent

ENV_CONDUCTOR = "BETTONG_CONDUCTOR"
ENV_TRACE = "BETTONG_TRACE"
ENV_RUN = "BETTONG_RUN"
ENV_NODE = "BETTONG_NODE"
ENV_INCARNATION = "BETTONG_INCARNATION"


class RunOverError(BettongError):
    """The conductor has ended the run that this process belongs to."""


class Recorder(Protocol):
    """Where events go. ``tell`` returns when the process may go on."""

    def notify(self, event: TraceEvent) -> None: ...


@dataclass(frozen=True)
class Instrumentation:
    """Which recorder a process uses; picklable, so that a driver can hand it to its tasks.

    Attributes:
        run: name of the run, so that a process left over from an earlier one is told apart.
        node: the node that this process belongs to.
        incarnation: which process of that node, counted from 1 at each restart.
        conductor: ``host:port`` of the conductor, or None.
        trace: file to which events are appended when there is no conductor, or None.
    """

    run: str = ""
    node: str = ""
    incarnation: int = 1
    conductor: str | None = None
    trace: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Instrumentation:
        """What the environment asks for; with nothing set, nothing is recorded."""
        return cls(
            run=env.get(ENV_RUN, ""),
            node=env.get(ENV_NODE, ""),
            incarnation=int(env.get(ENV_INCARNATION, "1")),
            conductor=env.get(ENV_CONDUCTOR) or None,
            trace=env.get(ENV_TRACE) or None,
        )

    def to_env(self) -> dict[str, str]:
        """The environment variables that make a child process the same."""
        return {
            ENV_RUN: self.run,
            ENV_NODE: self.node,
            ENV_INCARNATION: str(self.incarnation),
            ENV_CONDUCTOR: self.conductor or "",
            ENV_TRACE: self.trace or "",
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
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
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
        _present.cut_at = int(answer.get("cut", 0))
        _present.answer = answer.get("answer")
        if "errno" in answer:
            code = int(answer["errno"])
            raise OSError(code, os.strerror(code))

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
    _synced: int = 0
    _cut_at: int = 0

    def caused_by(self, *steps: str) -> None:
        self._causes += steps

    def carries(self, *ranges: MessageRange) -> None:
        self._carries += ranges

    def note(self, **detail: Any) -> None:
        self._detail.update(detail)

    def _notify(self, phase: Phase) -> None:
        self.recorder.notify(
            replace(
                self.event,
                phase=phase,
                causes=tuple(dict.fromkeys((*self.event.causes, *self._causes))),
                carries=(*self.event.carries, *self._carries),
                detail={**self.event.detail, **self._detail},
            )
        )

    def __enter__(self) -> Step:
        try:
            self._notify("before")
        except OSError as e:
            self._detail["error"] = f"{type(e).__name__}: {e}"
            self._notify("failed")
            raise
        self._cut_at = getattr(_present, "cut_at", 0)
        self.answer = getattr(_present, "answer", None)
        self._outer = getattr(_present, "step", None)
        _present.step = self
        return self

    def about_to_sync(self) -> bool:
        """Whether the power is cut before what comes next becomes durable."""
        self._synced += 1
        return self._synced == self._cut_at

    def power_is_cut(self, lost: str) -> NoReturn:
        """Say what was lost of what was not durable; nobody answers."""
        cut = replace(self.event, step=f"power-cut/{self.event.step}", detail={"lost": lost})
        self.recorder.notify(cut)
        raise RunOverError(f"step {self.event.step}: the power is cut")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _present.step = self._outer
        if isinstance(error, RunOverError):
            return
        if self._synced:
            self._detail["synced"] = self._synced
        if error is not None:
            self._detail["error"] = f"{type(error).__name__}: {error}"
        self._notify("after" if error is None else "failed")


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


_NULL = _NullStep()
_present = threading.local()
_instrumentation = Instrumentation()
_recorder: Recorder | None = None


def install(instrumentation: Instrumentation) -> None:
    """Make this process record as told; the same again changes nothing."""
    global _instrumentation, _recorder
    if instrumentation != _instrumentation:
        _instrumentation = instrumentation
        _recorder = instrumentation.recorder()


def installed() -> Instrumentation:
    """What this process records with, to be handed on to tasks and children."""
    return _instrumentation


def present() -> Step | None:
    """The step that this thread is in, where steps are watched."""
    found: Step | None = getattr(_present, "step", None)
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
