"""The nodes of a run on this machine: each a process with all that it starts."""

from __future__ import annotations

import copy
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Self

from bettong.engine.steps import ENV_TRACE, Instrumentation
from bettong.harness.faults.actuator import InjectionOutcome
from bettong.harness.processes.clock_ahead import ENV_AHEAD
from bettong.harness.processes.patience import patience
from bettong.harness.processes.session import Ended, Launcher, ProcessSession, Session
from bettong.lineage.errors import BettongError

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
DOWN_S = 86_400
"""For how long a node that was stopped is down, by its clock: by then what is old is old."""


class NodeError(BettongError):
    """A node that did not start, or ended when it should not have."""


class Node(ABC):
    """One node: alive or not, in its n-th incarnation.

    Attributes:
        name: as faults and the trace name it.
        incarnation: which process it is, counted from 1 at each start.
        log: file with all that its processes print.
        listens: it waits for others to ask it something.
    """

    listens = False

    def __init__(self, name: str, instrumentation: Instrumentation, log: Path) -> None:
        self.name = name
        self.incarnation = 0
        self.log = log
        self._instrumentation = instrumentation
        self._lock = threading.RLock()

    def start(self, begins: Callable[[int], None] = lambda incarnation: None) -> None:
        """Start it, as a new incarnation, whose number it says first; returns when it is ready, or
        was killed before that: then whoever did so starts it again. Raises NodeError."""
        with self._lock:
            self.incarnation += 1
            begins(self.incarnation)
            self._start(self._instrumentation.on(self.name, self.incarnation))
            until_ready = self._readiness()
        until_ready()

    def successor(self) -> Self:
        """A node like this one, not started, that goes on counting incarnations."""
        new = copy.copy(self)
        new._lock = threading.RLock()
        new._let_go()
        return new

    def kill(self) -> tuple[int, Ended | None]:
        """SIGKILL all of it: the incarnation that is dead, and how (None when there was none)."""
        with self._lock:
            return self.incarnation, self._kill()

    def crash(self) -> tuple[int, Ended | None]:
        """The same, save that of a node with a warm JVM the JVM may be spared: nothing that its
        incarnation has begun goes on there."""
        return self.kill()

    def stop(self) -> tuple[int, Ended | None]:
        """SIGTERM, as an operator's supervisor stops a node, and SIGKILL where that takes too
        long."""
        return self.kill()

    def pause(self) -> InjectionOutcome:
        """SIGSTOP all of it, if it runs. One that is being started is waited for: its first step
        may come before whoever starts it knows of it."""
        with self._lock:
            evidence = self._pause() if self.poll() is None else None
            return InjectionOutcome(evidence is not None, evidence or "it was not running")

    @abstractmethod
    def _start(self, instrumentation: Instrumentation) -> None: ...

    def _readiness(self) -> Callable[[], None]:
        """What waits until the process that was started can be asked, and raises NodeError when it
        does not come to that. Most are ready at once."""
        return lambda: None

    @abstractmethod
    def _kill(self) -> Ended | None: ...

    @abstractmethod
    def _pause(self) -> str | None:
        """SIGSTOP all of it: the evidence, None when there is nothing of it."""

    @abstractmethod
    def _let_go(self) -> None:
        """Forget the process, which another node object has."""

    @abstractmethod
    def resume(self) -> None:
        """SIGCONT all of it."""

    @abstractmethod
    def poll(self) -> int | None:
        """None while it runs, else how its process ended."""


class CommandNode(Node):
    """A node that is one command, which may say where it listens.

    Args:
        command: the same for each incarnation, as the launcher takes it.
        listen: ``HOST:PORT`` that it is given as ``--listen`` and on which it says, by a line
            ``{"listening": …}``, that it listens; None for a node that does not say when it is
            ready.
        env: variables added to the environment.
        launch: how its process is started.
    """

    def __init__(
        self,
        name: str,
        instrumentation: Instrumentation,
        log: Path,
        command: Sequence[str],
        *,
        listen: str | None = None,
        env: Mapping[str, str] | None = None,
        launch: Launcher = ProcessSession.start,
    ) -> None:
        super().__init__(name, instrumentation, log)
        self._listen = listen
        self.listens = listen is not None
        self._command = [*command, *(("--listen", listen) if listen else ())]
        self._env = {k: v for k, v in {**os.environ, **(env or {})}.items() if k != ENV_TRACE}
        self._launch = launch
        self._session: Session | None = None
        self._ahead_s = 0

    def _start(self, instrumentation: Instrumentation) -> None:
        self._session = self._launch(
            self._command,
            env={**self._env, **instrumentation.to_env(), ENV_AHEAD: str(self._ahead_s)},
            log=self.log,
            speaks=self._listen is not None,
        )

    def _readiness(self) -> Callable[[], None]:
        session = self._session
        if session is None or self._listen is None:
            return super()._readiness()
        return lambda: self._until_it_listens(session)

    def _until_it_listens(self, session: Session) -> None:
        if session.first_line(START_TIMEOUT).startswith(b'{"listening":'):
            return
        with self._lock:
            if self._session is session:
                session.kill()
                raise NodeError(f"{self.name} did not start: {last_words(self.log)}")

    def _kill(self) -> Ended | None:
        session, self._session = self._session, None
        return session.kill() if session is not None else None

    def stop(self) -> tuple[int, Ended | None]:
        with self._lock:
            session, self._session = self._session, None
            ended = session.stop(patience(STOP_TIMEOUT)) if session is not None else None
            self._ahead_s += DOWN_S
            return self.incarnation, ended

    def _let_go(self) -> None:
        self._session = None

    def _pause(self) -> str | None:
        return self._session.pause() if self._session is not None else None

    def resume(self) -> None:
        if self._session is not None:
            self._session.resume()

    def poll(self) -> int | None:
        return self._session.poll() if self._session is not None else -1


def last_words(log: Path, size: int = 500) -> str:
    """What the end of a log says, on one line; of a traceback, what was raised."""
    try:
        text = log.read_text("utf-8", "replace")
    except OSError:
        text = ""
    _, _, trace = text.rpartition("Traceback (most recent call last):\n")
    raised = dropwhile(lambda line: line.startswith(" "), trace.splitlines())
    words = "\n".join(raised)[:size] if trace != text else ""
    return " ".join((words or text[-size:]).split()) or "it said nothing"
